"""Count words of nine epochs, durably; the last process kills itself after each four of them."""

from __future__ import annotations

from tests.integration.cluster.scripts.actors import counts
from timely import execute

execute(counts)
