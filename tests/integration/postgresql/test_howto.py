"""The how-to of the documents runs against a real server, and prints what it has."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.api.modules import ROOT

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
BLOCK = re.compile(r"```(py|sql|text)\n(.*?)```", re.DOTALL)


def test_the_graph_in_the_howto_is_answered(dsn: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "postgresql.md").read_text()
    blocks: dict[str, list[str]] = {"py": [], "sql": [], "text": []}
    for kind, text in BLOCK.findall(page):
        blocks[kind].append(text)
    table, first, change, second = blocks["sql"]
    program: dict[str, Any] = {"__name__": "program"}
    exec(compile("".join(blocks["py"]), "postgresql.md", "exec"), program)
    program["DSN"] = dsn
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute(table)
        with program["session"](str(tmp_path)) as db:
            db.commit()
            assert shown(sql.execute(first).fetchall()) == blocks["text"][0]
        with program["session"](str(tmp_path)) as db:
            sql.execute(change)
            end = time.monotonic() + 30
            db.run(until=lambda: len(db["circles"]) == 5 or time.monotonic() > end)
            assert shown(sql.execute(second).fetchall()) == blocks["text"][1]


def shown(rows: list[Any]) -> str:
    return "".join(f" {' | '.join(map(str, row))}\n" for row in rows)
