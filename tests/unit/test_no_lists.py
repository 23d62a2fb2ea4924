"""What has records, and is not a list of them, names how to get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from differential import Collection, Session
from timely import Worker, execute_directly

USES: list[Callable[[Any], object]] = [list, lambda each: each[0], lambda each: each["x"], lambda each: each[:3]]


@pytest.mark.parametrize("use", USES)
def test_a_table_a_view_and_rows_name_what_lists_their_rows(use: Callable[[Any], object]) -> None:
    with Session() as db:
        table = db.table("sizes", {"x": [3, 4]}, key="x")
        db.commit()
        view = db.view("all", lambda t: t.sizes)
        for each, message in [
            (table, r"table 'sizes' is not a list: records\(\) lists its rows, find\(column=value\)"),
            (view, r"view 'all' is not a list: records\(\) lists"),
            (table.rows(), r"rows are not a list: records\(\) lists them"),
        ]:
            with pytest.raises(TypeError, match=message):
                use(each)
            assert len(each) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("use", USES)
def test_a_stream_and_a_collection_name_what_shows_their_records(use: Callable[[Any], object]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            with pytest.raises(TypeError, match=r"a stream is not a list, .*: inspect\(print\) shows them"):
                use(scope.to_stream([1, 2]))
            with pytest.raises(TypeError, match=r"a collection is not a list, .*: output\(\) gathers them"):
                use(Collection.of(scope, [1, 2]))

    execute_directly(program)
