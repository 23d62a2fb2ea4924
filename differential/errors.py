"""Every error and warning that `differential` raises: those of `timely.errors`, for both packages have one set.

>>> issubclass(TraceError, TimelyError)
True
"""

from timely.errors import *  # noqa: F403
from timely.errors import __all__ as __all__
