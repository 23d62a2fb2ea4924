"""The directory of `timely run --state`, where the session of the program keeps its commits."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

from timely.errors import SessionError
from timely.lowlevel import user_origin
from timely.services import STATE_VARIABLE


class ClaimHolder(Protocol):
    """A session, as its claim to the directory needs it."""

    @property
    def is_closed(self) -> bool:
        """Whether the session has ended, so another one may have the directory."""


_holders: WeakSet[ClaimHolder] = WeakSet()


def state_of_run(session: ClaimHolder) -> str | None:
    """Return the directory, which is this session's from now on; None if the program has none.

    Raises SessionError while another session of the program has it: only one session commits to a directory.
    """
    directory = os.environ.get(STATE_VARIABLE) or None
    if directory is not None:
        if any(not each.is_closed for each in _holders):
            raise SessionError(
                f"another session of this program has the directory of `timely run --state {directory}`: close it "
                f"first, or give Session(state=...) (at {user_origin()}) a directory of its own"
            )
        _holders.add(session)
    return directory
