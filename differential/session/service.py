"""What a session runs for other programs until it is closed."""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """What answers other programs."""

    def close(self) -> None:
        """Answer no more."""
