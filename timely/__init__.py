"""Timely dataflow: worker processes run operators over messages that carry logical timestamps.

The names of this package are those of `timely.api`, which is imported when one of them is first used. So the command
`timely`, which uses none, starts without importing NumPy. Submodules are imported on first use in the same way:
`timely.errors` is available after `import timely`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timely.api import *  # noqa: F403
    from timely.api import __all__ as __all__
else:

    def __getattr__(name):
        from importlib import import_module, util

        if not name.startswith("__") and util.find_spec(f"timely.{name}") is not None:
            return import_module(f"timely.{name}")
        api = import_module("timely.api")
        globals().update({each: getattr(api, each) for each in api.__all__}, __all__=api.__all__)
        if name not in globals():
            raise AttributeError(f"module 'timely' has no attribute {name!r}")
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
