"""Frames: named, typed columns, read from and converted to those of pandas, Polars, Arrow and others.

>>> frame = read({"customer": ["ann", "bob", None], "total": [3, 5, 7]})
>>> def program(worker):
...     with worker.dataflow() as scope:
...         orders, collection = new_input(scope)
...         output = collection.output()
...     orders.insert(*frame.columns)
...     orders.close()
...     worker.step_while(lambda: not output.done())
...     return output.contents()
>>> execute_directly(program)
{('ann', 3): 1, ('bob', 5): 1, (None, 7): 1}
"""

from differential.frames.frame import Frame
from differential.frames.read import read
from timely.lowlevel import fill_null, is_null, nullable, typed

__all__ = ["Frame", "fill_null", "is_null", "nullable", "read", "typed"]
