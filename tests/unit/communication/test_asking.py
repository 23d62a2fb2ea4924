"""Questions are answered to whoever has the keys, when there is an answer, and to nobody else."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest
import zmq

from timely.communication import asking
from timely.communication.asking import AnsweringSocket, AskingSocket
from timely.communication.curve import load_keys, make_keys
from timely.errors import ConfigError


@pytest.fixture
def keys(tmp_path: Path) -> str:
    return str(make_keys(str(tmp_path / "keys")).parent)


def test_an_answer_comes_when_there_is_one_and_nothing_after_a_while(
    keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.1)
    known: dict[bytes, list[bytes]] = {}
    server = AnsweringSocket("tcp://127.0.0.1:*", keys, known.get)
    client = AskingSocket(server.address, keys)
    try:
        assert client.ask(b"a", 30) == []
        monkeypatch.setattr(asking, "PATIENCE", 60.0)
        threading.Timer(0.1, lambda: (known.update(a=[b"1", b"2"]), server.ring())).start()
        known[b"a"] = [b"1", b"2"]
        assert client.ask(b"a", 30) == [b"1", b"2"]
        assert client.ask(b"b", 0.1) is None
        known[b"c"] = [b"3"]
        assert client.ask(b"c", 30) == [b"3"], "and not the late answer to another question"
    finally:
        client.close()
        server.close()


def test_strangers_are_refused_and_learn_nothing(keys: str, tmp_path: Path) -> None:
    asked: list[bytes] = []
    server = AnsweringSocket(
        "tcp://127.0.0.1:*", keys, lambda question: [question, str(asked.append(question)).encode()]
    )
    others = str(make_keys(str(tmp_path / "others")).parent)
    public, _ = load_keys(keys)
    try:
        stranger = AskingSocket(server.address, others)
        try:
            with suppress(ConfigError):
                assert stranger.ask(b"x", 0.3) is None
        finally:
            stranger.close()
        with zmq.Context() as context:
            for server_key in (None, public):  # in the clear; with the public key alone
                with context.socket(zmq.DEALER) as socket:
                    socket.linger = 0
                    if server_key is not None:
                        socket.curve_serverkey = server_key
                        socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
                    socket.connect(server.address)
                    with suppress(zmq.Again):  # the connection was refused before
                        socket.send(b"x", zmq.NOBLOCK)
                    assert not socket.poll(300)
        assert asked == []
        member = AskingSocket(server.address, keys)
        try:
            assert member.ask(b"y", 30) is not None
        finally:
            member.close()
        assert asked == [b"y"]
    finally:
        server.close()


def test_a_client_that_is_refused_gives_up_with_the_reason(keys: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_keys(str(other))
    server = AnsweringSocket("tcp://127.0.0.1:*", keys, lambda question: [question])
    client = AskingSocket(server.address, str(other))
    try:
        client._disconnect()
        # The server's key is right, and the own pair is another one: the handshake is refused at its end.
        client._keys = load_keys(str(other))
        public = load_keys(keys)[0]
        client._connect = lambda: _connect_to(client, public)  # type: ignore[method-assign]
        client._connect()
        with pytest.raises(ConfigError, match="refuses the keys"):
            client.ask(b"x", 30)
    finally:
        client.close()
        server.close()


def _connect_to(client: AskingSocket, server_key: bytes) -> None:
    client._socket = client._context.socket(zmq.DEALER)
    client._socket.linger = 0
    client._socket.curve_serverkey = server_key
    client._socket.curve_publickey, client._socket.curve_secretkey = client._keys
    client._socket.reconnect_ivl = 50
    client._monitor = client._socket.get_monitor_socket(asking.HANDSHAKE_FAILED)
    client._socket.connect(client._address)


def test_a_question_on_a_connection_that_was_given_up_is_not_waited_for_longer_than_permitted(keys: str) -> None:
    server = AnsweringSocket("tcp://127.0.0.1:*", keys, lambda question: [question])
    client = AskingSocket(server.address, keys)
    try:
        client._socket.disconnect(server.address)  # as ZeroMQ does if a handshake fails
        assert client.ask(b"x", 0.3) is None
        assert client.ask(b"y", 30) == [b"y"]
    finally:
        client.close()
        server.close()


def test_a_question_that_is_too_long_and_an_address_that_is_none_are_refused(keys: str) -> None:
    server = AnsweringSocket("tcp://127.0.0.1:*", keys, lambda question: [question])
    client = AskingSocket(server.address, keys)
    try:
        assert client.ask(b"x" * (asking.QUESTION_BYTES + 1), 0.5) is None
        assert client.ask(b"x" * (asking.QUESTION_BYTES // 2), 30) is not None
        with pytest.raises(ConfigError, match="nothing can be published at"):
            AnsweringSocket(server.address, keys, lambda question: None)
        with pytest.raises(ConfigError, match=r"99999': the highest port is 65535"):
            AnsweringSocket("tcp://127.0.0.1:99999", keys, lambda question: None)
    finally:
        client.close()
        server.close()
    with pytest.raises(ConfigError, match="is not an address to ask"):
        AskingSocket("nowhere", keys)
    with pytest.raises(ConfigError, match="make it with 'timely keys"):
        AskingSocket("tcp://127.0.0.1:1", f"{keys}/none")
