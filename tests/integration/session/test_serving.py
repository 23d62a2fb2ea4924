"""A served session over real connections: killed while it is written to, and read by those who do not read."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
import time as clock
from pathlib import Path
from typing import Any

import httpx
import pytest

from differential import Session
from differential.session.sources import server_sent_events, websocket
from tests.served import serve_impatiently

PROGRAM = Path(__file__).with_name("serving.py")
WAIT = 30.0
TOKEN = {"Authorization": "Bearer a token of the test"}


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_each_request_counts_once_however_often_the_program_is_killed(tmp_path: Path) -> None:
    chance = random.Random(7)
    address: list[str] = []
    answers: dict[int, Any] = {}
    errors: list[BaseException] = []
    is_over = threading.Event()

    def send() -> None:
        """Post a row after the other, each until it is answered."""
        try:
            number = 0
            while not is_over.is_set():
                body = json.dumps({"insert": {"id": number, "total": 1}})
                try:
                    found = httpx.post(
                        f"{address[-1]}tables/orders",
                        headers=TOKEN | {"Idempotency-Key": f"order {number}"},
                        content=body,
                        timeout=10,
                        trust_env=False,
                    )
                except httpx.TransportError:
                    clock.sleep(0.01)
                    continue
                if found.status_code != 503:
                    assert found.status_code == 200, found.text
                    answers[number] = found.json()
                    number += 1
        except BaseException as error:
            errors.append(error)

    sender = threading.Thread(target=send)
    for kill in range(6):
        with subprocess.Popen(
            [sys.executable, str(PROGRAM), str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as child:
            try:
                assert child.stdout is not None
                address.append(child.stdout.readline().strip())
                if not sender.is_alive() and not errors and not answers:
                    sender.start()
                known, end = len(answers), clock.monotonic() + WAIT
                while kill % 2 and len(answers) == known and clock.monotonic() < end:
                    clock.sleep(0.01)  # each second program answers before it is killed, however busy the machine is
                clock.sleep(chance.random())
            finally:
                child.kill()
    is_over.set()
    sender.join(30)
    assert not sender.is_alive()
    assert errors == []
    with Session(state=str(tmp_path / "db")) as db:
        rows = db.table("orders", {"id": int, "total": int}, key="id").records()
    assert len(answers) >= 3, "nothing was answered"
    assert [row for row in rows if row[0] in answers] == [(number, 1) for number in answers]
    assert len(rows) <= len(answers) + 1, "a request that was not answered, at most, is there too"
    commits = [answer["commit"] for answer in answers.values()]
    assert commits == sorted(set(commits))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["events", "messages"])
def test_a_reader_that_does_not_read_is_disconnected_and_holds_up_nobody(form: str) -> None:
    with Session() as db, Session() as other:
        texts = db.table("texts", {"x": int, "text": str}, key="x")
        server = serve_impatiently(db, 1.0, queue=1 << 20)
        host = httpx.URL(server.url)
        with socket.create_connection((host.host, host.port or 0), timeout=30) as reader:
            upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            upgrade += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            head = f"GET /changes/texts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
            reader.sendall(f"{head}{upgrade if form == 'messages' else ''}\r\n".encode())
            copy = other.table("copy", {"x": int, "text": str}, key="x")
            source = websocket if form == "messages" else server_sent_events
            address = f"{server.url.replace('http', 'ws') if form == 'messages' else server.url}changes/texts"
            copy.read_from(source(address, token=server.token))
            for number in range(60):
                texts.insert(x=list(range(number * 500, number * 500 + 500)), text=["x" * 1000] * 500)
                db.commit()
                end = clock.monotonic() + 30
                other.run(until=lambda: len(copy) == len(texts) or clock.monotonic() > end)  # noqa: B023
                assert len(copy) == len(texts), other.status()
            clock.sleep(2.5)
            received = 0
            while data := reader.recv(1 << 20):
                received += len(data)
            assert received < 25_000_000, "of 30 MB; the connection ends before all of it was sent"
