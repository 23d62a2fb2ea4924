"""What a program finds while the session's thread ends the changes that it follows."""

from __future__ import annotations

from typing import Any

import pytest

from differential.session.changes import Changes


def test_changes_are_never_over_without_the_error_that_has_ended_them() -> None:
    """A loop over them would end as if nothing had happened."""
    looks: list[str] = []

    class Followed(Changes):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "is_over" and value:
                with pytest.raises(ValueError, match="broken"):
                    self.get(timeout=0)
                looks.append(name)

    Followed(lambda changes: None).end(ValueError("broken"))
    assert looks == ["is_over"]
