"""Collections that hold the same rows from the least time on."""

from __future__ import annotations

from typing import Any, cast

from differential.data.updates import Updates
from differential.operators.input import columns_of, interned_updates, owned
from timely import Scope, Stream
from timely.lowlevel import Capability, Logic, OperatorBuilder, check_scope


def constant(scope: Scope, columns: tuple[Any, ...]) -> Stream:
    """Return the updates of a collection that holds the rows of `columns` (worker 0's) from the least time on."""
    check_scope("constant", scope)
    rows, _ = owned(columns)
    updates = interned_updates(Updates.at(scope.minimum, columns_of(rows)), scope.dataflow.host)
    builder = OperatorBuilder(scope, "constant", constant=True)
    output, stream = builder.add_output(initial=True)

    def constructor(capabilities: list[Capability]) -> Logic:
        (capability,) = capabilities

        def logic() -> None:
            # Without an output the capability is one that an earlier activation has dropped.
            if scope.index == 0 and capability.output is not None:
                output.give(capability, cast(Any, updates))
            capability.drop()

        return logic

    builder.build(constructor)
    return stream
