"""The command `timely`, from its first line: SIGUSR1 waits until something can answer it.

Its default action would end the command. It is blocked before anything else is imported, also in the interpreter that
begins again with large pages; whoever handles it unblocks it. What remains is the start of the interpreter itself.
"""

from __future__ import annotations

import signal


def main() -> int:
    """Run the command with the arguments of the process; return its exit status."""
    if hasattr(signal, "SIGUSR1"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    from timely.run.cli import main as run

    return run()
