"""The directory of `timely run --state`, where the session of the program keeps its commits."""

from __future__ import annotations

import os
from weakref import WeakSet

from differential.session.engine import Engine
from timely.errors import SessionError
from timely.lowlevel import user_origin
from timely.services import STATE_VARIABLE

_holders: WeakSet[Engine] = WeakSet()
"""The engines of the sessions that have had the directory."""


def state_of_run(engine: Engine) -> str | None:
    """Return the directory, which is that of this engine's session from now on; None if the program has none.

    Raises SessionError while another session of the program has it: only one session commits to a directory.
    """
    directory = os.environ.get(STATE_VARIABLE) or None
    if directory is not None:
        if any(each.is_running for each in _holders):
            raise SessionError(
                f"another session of this program has the directory of `timely run --state {directory}`: close it "
                f"first, or give Session(state=...) (at {user_origin()}) a directory of its own"
            )
        _holders.add(engine)
    return directory
