"""Notices on stderr, for whoever runs the program."""

import sys


def notify(text: str) -> None:
    """Print `timely: ` and a text on stderr, in one piece, so that threads do not mix their lines."""
    sys.stderr.write(f"timely: {text}\n")
    sys.stderr.flush()
