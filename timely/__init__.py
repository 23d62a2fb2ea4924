"""Timely dataflow: worker processes run operators over messages tagged with logical timestamps.

Its names are those of `timely.api`, which is imported when the first of them is used: the command `timely` uses none,
and so starts without NumPy. Its modules are imported likewise: `timely.errors` is there after `import timely`.
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
