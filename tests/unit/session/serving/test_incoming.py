"""Requests that change a table: each is one commit or none, and counts once."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from differential import Session
from differential.durable import LocalStore
from differential.session.serving import incoming
from timely.errors import ConfigError, SessionError, StoreError
from timely.run.live import serve_live


def client(server: Any) -> httpx.Client:
    headers = {"Authorization": f"Bearer {server.token}"}
    return httpx.Client(base_url=server.url, headers=headers, trust_env=False, verify=False, timeout=20)


def lines(*changes: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, changes))


def insert(**row: Any) -> dict[str, Any]:
    return {"insert": row}


def test_a_request_is_one_commit_of_its_lines_in_order() -> None:
    with Session() as db, client(db.serve()) as http:
        assert http.get("/").json() == {"commit": 0, "read": [], "write": []}
        table = db.table("stock", {"item": str, "pieces": int | None}, key="item")
        with table.changes() as changes:
            body = lines(insert(item="nut", pieces=3), insert(item="cog"), {"upsert": {"item": "nut", "pieces": 4}})
            assert http.post("/tables/stock", content=body).json() == {"commit": 1, "rows": 3, "rejected": 0}
            assert table.records() == [("cog", None), ("nut", 4)]
            body = lines({"delete": {"item": "cog"}}, {"delete": {"item": "nut", "pieces": 4}}, insert(item="gear"))
            assert http.post("/tables/stock", content=body).json()["commit"] == 2
            assert [change.time for change in changes.read_nowait()] == [1, 2]
        assert http.get("/rows/stock").json() == {"commit": 2, "columns": ["item", "pieces"], "rows": [["gear", None]]}
        assert http.post("/tables/stock").json() == {"commit": 2, "rows": 0, "rejected": 0}


def test_a_request_that_is_refused_changes_nothing_and_leaves_what_the_program_has_not_committed() -> None:
    with Session() as db, client(db.serve()) as http:
        stock = db.table("stock", {"item": str, "pieces": int})
        stock.insert(item="mine", pieces=1)
        absent = http.post(
            "/tables/stock", content=lines(insert(item="a", pieces=1), {"delete": {"item": "b", "pieces": 2}})
        )
        assert absent.status_code == 409
        assert "does not have the row ('b', 2)" in absent.json()["error"]
        wrong = http.post(
            "/tables/stock",
            content=lines(
                insert(item="a", pieces=1), insert(item="b", pieces="x"), insert(box=1), {"upsert": {"item": "c"}}
            ),
        )
        assert wrong.status_code == 422
        assert [(each["line"], each["error"].partition(":")[0]) for each in wrong.json()["lines"]] == [
            (2, "column 'pieces' (int64) cannot be 'x'"),
            (3, "there is no column 'box'"),
            (4, "table 'stock' was made without a key, by which upsert replaces rows"),
        ]
        assert (len(stock), db.status().uncommitted) == (0, 1)
        assert http.post("/tables/stock", content=lines(insert(item="a", pieces=1))).status_code == 200
        assert stock.records() == [("a", 1)]
        assert (db.commit(), len(stock)) == (2, 2)


def test_a_request_that_is_refused_leaves_a_table_that_begins_with_rows_of_the_program() -> None:
    with Session() as db, client(db.serve()) as http:
        stock = db.table("stock", {"item": ["mine"], "pieces": [1]}, key="item")
        body = lines({"delete": {"item": "b", "pieces": 2}})
        assert http.post("/tables/stock", content=body).status_code == 409
        db.commit()
        assert stock.records() == [("mine", 1)]


def test_what_a_callback_inserts_as_a_request_is_committed_belongs_to_the_next_commit_of_the_program() -> None:
    with Session() as db, client(db.serve()) as http:
        stock = db.table("stock", {"item": str})
        log = db.table("log", {"by": str, "commit": int})
        stock.watch(lambda change: log.insert(by="callback", commit=change.time))
        log.insert(by="program", commit=0)
        assert http.post("/tables/stock", content=lines(insert(item="nut"))).json()["commit"] == 1
        assert (len(log), db.status().uncommitted) == (0, 2)
        db.commit()
        assert log.records() == [("callback", 1), ("program", 0)]


def test_lines_that_are_no_rows_go_to_the_rejects_in_the_same_commit() -> None:
    with Session() as db:
        db.table("stock", {"item": str, "pieces": int})
        rejects = db.rejects()
        with client(db.serve(on_error=rejects)) as http:
            answer = http.post("/tables/stock", content=lines(insert(item="a", pieces=1)) + "\n\noops\n[1]\n{}")
        assert answer.json() == {"commit": 1, "rows": 1, "rejected": 3}
        assert [record[:4] for record in rejects.records()] == [
            ("http stock", "stock", 3, "oops"),
            ("http stock", "stock", 4, "[1]"),
            ("http stock", "stock", 5, "{}"),
        ]
        assert all("this is not one of" in error for error in [record[4] for record in rejects.records()][1:])


def test_a_line_with_another_kind_of_list_is_no_row() -> None:
    body = lines(insert(x=1, a={"b": 1}), insert(x=2, a=[2]), {"upsert": {"x": 3, "a": ["c"]}}, insert(x=4))
    for on_error in ("stop", "skip"):
        with Session() as db, client(db.serve(on_error=on_error)) as http:  # type: ignore[arg-type]
            table = db.table("boxes", {"x": int, "a": list}, key="x")
            assert http.post("/tables/boxes", content=lines(insert(x=0, a=[1]))).json()["rows"] == 1
            answer = http.post("/tables/boxes", content=body)
            if on_error == "stop":
                assert (answer.status_code, [each["line"] for each in answer.json()["lines"]]) == (422, [1, 3])
                assert answer.json()["lines"][0]["error"] == (
                    "column 'a' of table 'boxes' holds lists of numbers, not dicts such as {'b': 1}"
                )
                assert len(table) == 1
            else:
                assert answer.json() == {"commit": 2, "rows": 2, "rejected": 2}
                assert [row[0] for row in table.records()] == [0, 2, 4]


@pytest.mark.parametrize("first", [0, 990])
def test_lists_decide_what_follows_them_in_a_request_unless_they_are_left_out(first: int) -> None:
    wrong = [insert(a=[], b=[1]), insert(a=["x"], b={"c": 1}), insert(a=[1], b=[2])] * 10
    with Session() as db, client(db.serve(on_error="skip")) as http:
        table = db.table("boxes", {"a": list, "b": list})
        body = lines(*[insert(a=[], b=[])] * first, *wrong, insert(a=["x"], b=[]))
        answer = http.post("/tables/boxes", content=body)
        refused = 11 if first == 0 else 5  # the first thousand rows are looked at, as those of a program are
        assert (answer.status_code, answer.json()["rejected"]) == (200, refused), answer.text
        assert len(table) == first + 31 - refused


def test_a_line_that_has_a_field_twice_is_no_change_and_loses_nothing() -> None:
    with Session() as db, client(db.serve()) as http:
        stock = db.table("stock", {"item": str, "pieces": int})
        for line in (
            '{"insert": {"item": "a", "pieces": 1}, "insert": {"item": "b", "pieces": 2}}',
            '{"insert": {"item": "a", "item": "b", "pieces": 1}}',
        ):
            answer = http.post("/tables/stock", content=line)
            assert answer.status_code == 422
            assert "twice" in answer.json()["lines"][0]["error"]
        assert stock.records() == []


def test_a_number_that_would_become_infinite_is_no_row() -> None:
    with Session() as db, client(db.serve()) as http:
        prices = db.table("prices", {"price": float})
        answer = http.post("/tables/prices", content='{"insert": {"price": -1e400}}')
        assert (answer.status_code, answer.json()["lines"][0]["error"]) == (
            422,
            "column 'price' (float64) cannot be Decimal('-1E+400')",
        )
        assert http.post("/tables/prices", content='{"insert": {"price": "-Infinity"}}').status_code == 200
        assert prices.records() == [(-math.inf,)]


def test_bytes_are_posted_in_the_form_in_which_they_are_read() -> None:
    with Session() as db, client(db.serve()) as http:
        files = db.table("files", {"name": str, "data": bytes})
        files.insert(name="a", data=b"\0\xff")
        db.commit()
        _, data = http.get("/rows/files").json()["rows"][0]
        assert http.post("/tables/files", content=lines(insert(name="b", data=data))).status_code == 200
        assert files.records() == [("a", b"\0\xff"), ("b", b"\0\xff")]
        for wrong in ("A", "####", "YQ==\n", "é", 7, None):
            assert http.post("/tables/files", content=lines(insert(name="c", data=wrong))).status_code == 422


def test_tables_are_served_by_every_name_that_they_may_have() -> None:
    with Session() as db, client(db.serve()) as http:
        for name in ("a/b", "/", "c/", "x?y#z%20", "\U0001f600 \n'"):
            table = db.table(name, {"x": int})
            path = quote(name, safe="")
            assert http.post(f"/tables/{path}", content=lines(insert(x=1))).status_code == 200
            assert http.get(f"/rows/{path}").json()["rows"] == [[1]]
            assert table.records() == [(1,)]


def test_what_is_not_served_is_refused_with_a_reason_in_json() -> None:
    with Session() as db, client(db.serve()) as http:
        db.table("stock", {"item": str})
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("PUT", "/tables/stock", 405),
            ("GET", "/tables/stock", 405),
            ("POST", "/rows/stock", 405),
            ("POST", "/changes/stock", 405),
            ("GET", "/rows/nothing", 404),
        ):
            answer = http.request(method, path)
            assert answer.status_code == status, path
            error = answer.json()["error"]
            assert ("there is no" in error) == (status == 404), error
            assert (method in error) == (status == 405), error


def test_a_body_that_is_compressed_is_refused_as_such() -> None:
    with Session() as db, client(db.serve()) as http:
        db.table("stock", {"item": str})
        body = gzip.compress(lines(insert(item="a")).encode())
        answer = http.post("/tables/stock", content=body, headers={"Content-Encoding": "gzip"})
        assert (answer.status_code, "not compressed" in answer.json()["error"]) == (415, True)


def test_a_line_whose_event_time_is_null_is_no_row() -> None:
    with Session() as db:
        visits = db.table("visits", {"page": str, "at": dt.datetime}).event_time("at")
        with client(db.serve(on_error=db.rejects())) as http:
            body = lines(insert(page="a", at=None), insert(page="b", at="2026-03-01T12:00:00"))
            answer = http.post("/tables/visits", content=body)
        assert answer.json() == {"commit": 1, "rows": 1, "rejected": 1}
        assert visits.records() == [("b", dt.datetime(2026, 3, 1, 12))]


def test_a_repeated_request_counts_once_also_in_a_session_that_is_opened_again(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "order 7"}
    found = []
    for _ in range(2):
        with Session(state=str(tmp_path / "db")) as db:
            stock = db.table("stock", {"item": str, "pieces": int})
            with client(db.serve()) as http:
                for _ in range(2):
                    found.append(
                        http.post("/tables/stock", content=lines(insert(item="a", pieces=1)), headers=key).json()
                    )
                other = http.post("/tables/stock", content=lines(insert(item="b", pieces=1)), headers=key)
                assert other.status_code == 422
                assert "belongs to another request, commit 1" in other.json()["error"]
            assert stock.records() == [("a", 1)]
            assert db.commit() == len(found) // 2 + 1
    first = {"commit": 1, "rows": 1, "rejected": 0}
    assert found == [first, *[first | {"repeated": True}] * 3]


def test_a_request_that_is_repeated_to_another_server_of_the_session_counts_once() -> None:
    key, body = {"Idempotency-Key": "order 7"}, lines(insert(item="a", pieces=1))
    with Session() as db:
        stock = db.table("stock", {"item": str, "pieces": int})
        with client(db.serve()) as one, client(db.serve()) as other:
            first = one.post("/tables/stock", content=body, headers=key).json()
            assert other.post("/tables/stock", content=body, headers=key).json() == first | {"repeated": True}
        assert stock.records() == [("a", 1)]


def test_a_session_whose_disk_has_failed_answers_every_request_as_unavailable(tmp_path: Path) -> None:
    with Session(state=str(tmp_path / "db")) as db, client(db.serve()) as http:
        db.table("stock", {"item": str})
        shutil.rmtree(tmp_path / "db")
        for _ in range(2):
            answer = http.post("/tables/stock", content=lines(insert(item="a")), headers={"Idempotency-Key": "1"})
            assert (answer.status_code, "becomes durable" in answer.json()["error"]) == (503, True)
        assert http.get("/rows/stock").json()["rows"] == []


@pytest.mark.parametrize(
    ("full", "status", "field", "rows"), [("stock", 503, "error", []), ("copy", 200, "notice", [["a"]])]
)
def test_a_full_disk_is_unavailable_before_the_commit_is_decided_and_a_notice_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, status: int, field: str, rows: list[list[str]]
) -> None:
    def fail(self: LocalStore, *arguments: Any, whole: Any = LocalStore.put_new) -> Any:
        if self.directory.endswith(full):
            raise StoreError("it is full")
        return whole(self, *arguments)

    monkeypatch.setattr(LocalStore, "put_new", fail)
    with Session(state=str(tmp_path / "db")) as db, client(db.serve()) as http:
        db.table("stock", {"item": str})
        db.view("copy", lambda t: t.stock, durable=True)
        answer = http.post("/tables/stock", content=lines(insert(item="a")))
        outcome = "not made" if status == 503 else "complete"
        assert (answer.status_code, f"it is full (commit 1 is {outcome})" in answer.json()[field]) == (status, True)
        assert http.get("/rows/stock").json()["rows"] == rows


def test_the_oldest_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "KEPT", 2)
    with Session() as db, client(db.serve()) as http:
        stock = db.table("stock", {"item": str})
        for key in ("a", "b", "c", "b", "a"):
            http.post("/tables/stock", content=lines(insert(item=key)), headers={"Idempotency-Key": key})
        assert stock.records() == [("a",), ("a",), ("b",), ("c",)]
        assert [record[0] for record in db["http_requests"].records()] == ["a", "c"]


def test_a_commit_in_which_a_view_fails_is_answered_with_its_number() -> None:
    with Session() as db, client(db.serve()) as http:
        stock = db.table("stock", {"pieces": int})
        db.view("wrong", lambda t: t.stock.map(lambda pieces: pieces.no_such_thing))
        answer = http.post("/tables/stock", content=lines(insert(pieces=1)))
        assert (answer.status_code, answer.json()["commit"], stock.records()) == (200, 1, [(1,)])
        assert "view 'wrong' failed" in answer.json()["notice"]


def test_names_that_may_not_be_read_or_changed_are_as_if_they_were_not_there() -> None:
    with Session() as db:
        db.table("a", {"x": int})
        db.table("b", {"x": int})
        db.view("c", lambda t: t.b)
        with client(db.serve(read=["a"], write=["b", "c"])) as http:
            assert [each["name"] for each in http.get("/").json()["read"]] == ["a"]
            assert http.get("/").json()["write"] == ["b"]
            refused = [http.get(f"/rows/{name}").status_code for name in ("b", "http_requests", "nothing")]
            refused += [http.get("/changes/b").status_code]
            refused += [http.post(f"/tables/{name}", content=lines(insert(x=1))).status_code for name in ("a", "c")]
            assert refused == [404] * 6
            assert http.post("/tables/b", content=lines(insert(x=1))).status_code == 200


def test_a_certificate_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    with Session() as db:
        for name in ("junk", "absent"):
            file = str(tmp_path / name)
            for serve in (
                partial(db.serve, certificate=(file, file)),
                partial(serve_live, 0, certificate=(file, file)),
            ):
                with pytest.raises(ConfigError, match=f"cannot use the certificate {file}"):
                    serve()


def test_what_cannot_be_served_is_refused_with_the_remedy() -> None:
    with Session() as db:
        for options, message in (
            ({"host": "0.0.0.0"}, "a token of your own and a certificate"),
            ({"host": "example.org"}, "the IP address of an interface"),
            ({"token": "short"}, "at least 16 characters"),
            ({"token": "é" * 16}, "must be printable ASCII"),
            ({"token": " a token of your own"}, "must be printable ASCII"),
            ({"token": "a token of\nyour own"}, "must be printable ASCII"),
            ({"host": "192.0.2.1", "token": "x" * 16, "certificate": ("a", "b")}, "nothing can be served at 192.0.2.1"),
        ):
            with pytest.raises(ConfigError, match=message):
                db.serve(**options)  # type: ignore[arg-type]
        with pytest.raises(SessionError, match="no limit 'size'"):
            db.serve(size=3)


@pytest.mark.parametrize("columns", [{"key": [1]}, {"place": str, **dict.fromkeys(incoming.REQUESTS, str)}])
def test_another_table_of_the_name_of_the_requests_is_refused(columns: dict[str, Any]) -> None:
    with Session() as db:
        db.table(incoming.TABLE, columns)
        with pytest.raises(SessionError, match="there is already a table 'http_requests'"):
            db.serve()
        db.drop(incoming.TABLE)
        db.view(incoming.TABLE, lambda t: t.constant(1))
        with pytest.raises(SessionError, match="view 'http_requests' is not a table"):
            db.serve()


def test_the_rows_of_keys_are_found_by_their_texts() -> None:
    with Session(2) as db, client(db.serve()) as http:
        stock = db.table("stock", {"item": str, "day": dt.date, "box": int | None, "pieces": int}, key=["item", "box"])
        days = db.view("days", lambda t: t.stock.group_by("day").sum("pieces"))
        assert http.get("/rows/stock?item=nut&box=1").json()["rows"] == []
        stock.insert([("nut", dt.date(2026, 1, 2), 1, 5), ("nut", dt.date(2026, 1, 3), None, 6), ("a b", None, 2, 7)])
        db.commit()
        answer = http.get("/rows/stock?item=nut&box=1&item=nut&box=&item=bolt&box=1").json()
        assert (answer["commit"], answer["columns"]) == (1, ["item", "day", "box", "pieces"])
        assert answer["rows"] == [["nut", "2026-01-02", 1, 5], ["nut", "2026-01-03", None, 6]]
        assert http.get("/rows/stock?box=2&item=a%20b").json()["rows"] == [["a b", None, 2, 7]]
        assert http.get("/rows/days?day=2026-01-03&day=2026-01-03").json()["rows"] == [["2026-01-03", 6]]
        assert http.get("/rows/days?day=").json()["rows"] == [[None, 7]]
        for query, error in (
            ("stock?item=nut", "table 'stock' has the key 'item', 'box': give as many values"),
            ("stock?item=nut&box=1&box=2", "give as many values"),
            ("stock?pieces=5", "give as many values"),
            ("stock?item=nut&box=x", "column 'box' (int64?) cannot be 'x'"),
            ("days?day=tomorrow", "column 'day' (date) cannot be 'tomorrow'"),
        ):
            answer = http.get(f"/rows/{query}")
            assert (answer.status_code, error in answer.json()["error"]) == (400, True), answer.json()
        db.drop("days")
        assert http.get("/rows/days?day=").status_code == 404
        assert days.name == "days"
