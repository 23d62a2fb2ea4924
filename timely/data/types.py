"""The logical types by their names."""

from __future__ import annotations

import re
from functools import lru_cache

from timely.data import moments, nullable, numeric
from timely.data.logical import LogicalType
from timely.data.opaque import Opaque
from timely.errors import DataError


@lru_cache(1024)
def logical_type(name: str) -> LogicalType:
    """Return the type with a name. Raises DataError where there is none; names of plain columns have none.

    >>> logical_type("timestamp[us, UTC]"), logical_type("decimal(9, 2)").stores
    (timestamp[us, UTC], 'i')
    """
    for pattern, make in (*moments.PATTERNS, *numeric.PATTERNS, *nullable.PATTERNS, ("value", Opaque)):
        found = re.fullmatch(pattern, name)
        if found is not None:
            return make(name, *found.groups())
    raise DataError(f"{name!r:.80} is not a column type: docs/types.md lists them")
