"""The warning about what a session loses that is closed before a commit."""

from __future__ import annotations

import sys
from warnings import warn_explicit

from differential.session.catalog import Catalog
from timely.errors import UncommittedWarning
from timely.lowlevel import user_origin


def lost_statements(catalog: Catalog) -> str | None:
    """Return what a session loses if it is closed now; None if that is nothing, or if an error is the reason.

    A session without `state` loses its tables anyway: of these, first rows that were never committed do not count.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     db.table("stock", {"item": str}).insert(item="nut")
    ...     lost_statements(db._catalog)
    ...     db.rollback()
    ...     lost_statements(db._catalog)
    "1 statement(s) on table 'stock'"
    """
    is_open = catalog.blocks.depth > 0 or catalog.blocks.is_torn
    # An error that is on its way out of `with Session()` is the one to see.
    if not catalog.uncommitted or is_open or catalog.is_over or sys.exc_info()[1] is not None:
        return None
    if catalog.storage is None and {catalog.items.get(name) for name in catalog.changing} <= catalog.begun:
        return None
    return f"{catalog.uncommitted} statement(s) on table {', '.join(map(repr, catalog.changing))}"


def warn_of(lost: str | None) -> None:
    """Warn, at the line of the program that closes the session, of what is lost with it."""
    if lost is not None:
        origin = user_origin()
        warn_explicit(
            f"{lost} are lost, because the session is closed before commit(); rollback() forgets them on purpose",
            UncommittedWarning,
            origin.file,
            origin.line,
        )
