"""A command on a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time as clock
from collections.abc import Sequence


def on_a_terminal(command: Sequence[str], wanted: bytes, seconds: float) -> bytes:
    """Run a command until it has shown what is wanted, as a pattern, and end it; return what it has shown."""
    master, slave = pty.openpty()
    shown = b""
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True) as process:
        os.close(slave)
        try:
            end = clock.monotonic() + seconds
            while not re.search(wanted, shown):
                assert clock.monotonic() < end, shown[-2000:].decode(errors="replace")
                if select.select([master], [], [], 0.5)[0]:
                    shown += os.read(master, 1 << 16)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
            os.close(master)
    return shown
