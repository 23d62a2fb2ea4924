"""The queries of docs/howto/sql.md, here and in DuckDB."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from differential import Session

duckdb = pytest.importorskip("duckdb")

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "sql.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)\n```\n\n```py\n(.*?)\n```", PAGE, re.DOTALL)
SETUP = re.search(r"```python\n(.*?)\n```", PAGE, re.DOTALL)

CREATED = """
CREATE TABLE orders (id BIGINT, customer VARCHAR, total BIGINT, "day" DATE);
CREATE TABLE people (name VARCHAR, city VARCHAR);
CREATE TABLE roads ("start" VARCHAR, "end" VARCHAR);
"""


@pytest.fixture(scope="module")
def tables() -> Any:
    """Run what the page runs, and yield the session and its names."""
    assert SETUP is not None
    names: dict[str, Any] = {}
    exec(SETUP.group(1), names)
    yield names
    names["db"].close()


def rows(step: int, names: dict[str, Any]) -> dict[str, list[Any]]:
    """Return rows that a step inserts."""
    day = names["dt"].date(2026, 2, 27)
    customers = ["ann", "bob", "eva", "ian", "ann"]
    return {
        "orders": [
            (10 * step + n, customers[(n + step) % 5], 7 * n % 19 + step, day + names["dt"].timedelta(n))
            for n in range(5)
        ],
        "people": [[("ann", "Rome"), ("bob", None)], [("eva", "Oslo")], [("zoe", None)]][step],
        "roads": [
            [("Rome", "Pisa"), ("Pisa", "Genoa"), ("Bari", "Lecce")],
            [("Genoa", "Bari"), ("Genoa", "Rome")],
            [("Lecce", "Lecce")],
        ][step],
    }


def test_the_page_has_its_queries_in_both_languages() -> None:
    assert len(QUERIES) >= 20
    assert PAGE.count("```sql") == PAGE.count("```py\n") == len(QUERIES)


def test_each_query_has_the_same_answer_in_both_languages_after_each_change(tables: dict[str, Any]) -> None:
    db: Session = tables["db"]
    definitions: list[Callable[[Any], Any]] = [eval(f"lambda t: {here}", tables) for _, here in QUERIES]
    views = [db.view(f"view {number}", definition) for number, definition in enumerate(definitions)]
    with duckdb.connect() as other:
        other.execute(CREATED)
        kept: list[dict[str, list[Any]]] = []
        answered = set()
        for step in range(4):
            if step < 3:
                kept.append(rows(step, tables))
                for name, added in kept[-1].items():
                    db.table(name).insert(added)
                    other.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(added[0]))})", added)
            else:
                for name, gone in kept[0].items():
                    db.table(name).delete(gone[1:])
                    for row in gone[1:]:
                        columns = [column for column, *_ in other.execute(f"DESCRIBE {name}").fetchall()]
                        same = " AND ".join(f'"{column}" IS NOT DISTINCT FROM ?' for column in columns)
                        other.execute(f"DELETE FROM {name} WHERE {same}", row)
            db.commit()
            for (sql, here), view in zip(QUERIES, views):
                expected = other.execute(sql).fetchall()
                assert Counter(view.records()) == Counter(expected), f"{sql}\n{here}\nafter step {step}"
                answered |= {sql} if expected else set()
                assert view.columns == tuple(column for column, *_ in other.execute(sql).description), here
        assert answered == {sql for sql, _ in QUERIES}
