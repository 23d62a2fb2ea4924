"""What algorithms on collections may use of `differential`, besides collections: the contract for libraries on top.

`differential.graphs` uses nothing else. An algorithm is a function over collections. It checks its arguments first,
so that an error names the algorithm and the line of the program that called it. `check_collections` accepts
arrangements, of which a join reads the index, and `check_rows` does not. Functions of rows receive columns, and
`kind_of` returns the `ColumnKind` of one, or its logical type.

>>> def doubled(numbers):
...     check_collections("doubled", numbers=numbers)
...     def function(number):
...         if kind_of(number) is not ColumnKind.INT:
...             raise TypeError("doubled: numbers must be integers")
...         return number * 2
...     return numbers.map(function)
>>> example(lambda scope: doubled(Collection.of(scope, np.array([1, 2]))))
[((2,), 1), ((4,), 1)]
"""

from differential.arguments import check_collections, check_rows
from differential.data.codes import ColumnKind, kind_of

__all__ = ["ColumnKind", "check_collections", "check_rows", "kind_of"]
