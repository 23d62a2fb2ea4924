"""The entry point of the command `timely`, which blocks SIGUSR1 until something can answer it.

The signal's default action would end the command. So it is blocked before anything else is imported, and stays blocked
in an interpreter that restarts with large pages; the code that handles it unblocks it. Only the start of the
interpreter itself remains unprotected.
"""

from __future__ import annotations

import signal


def main() -> int:
    """Run the command with the arguments of the process; return its exit status."""
    if hasattr(signal, "SIGUSR1"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        from timely.run.cli import main as run
    except KeyboardInterrupt:  # in the first moments, when nothing has begun
        return 128 + signal.SIGINT
    return run()
