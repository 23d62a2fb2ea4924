"""The traces of these tests are checked."""

from tests.checked_traces import checked_traces

__all__ = ["checked_traces"]
