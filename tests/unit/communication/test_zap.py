"""The thread that decides whether a client is a member, and how long it exists."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from timely.communication.curve import ENDPOINT, Authenticator, load_keys, make_keys
from timely.communication.ends import SharedContext
from timely.errors import ConfigError

MEMBER, STRANGER = (zmq.curve_keypair()[0] for _ in range(2))


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        ([z85.decode(MEMBER)], b"200"),
        ([z85.decode(STRANGER)], b"400"),
        ([MEMBER], b"400"),
        ([z85.decode(MEMBER)[:31]], b"400"),
        ([z85.decode(MEMBER), b""], b"400"),
        ([b""], b"400"),
        ([], b"400"),
    ],
)
def test_only_the_key_of_the_cluster_is_let_in(shown: list[bytes], status: bytes) -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as server:
        authenticator = Authenticator(context, MEMBER)
        try:
            server.connect(ENDPOINT)
            server.send_multipart([b"1.0", b"17", b"", b"127.0.0.1", b"", b"CURVE", *shown])
            assert server.poll(30_000), "no answer within 30 s"
            assert server.recv_multipart()[:3] == [b"1.0", b"17", status]
        finally:
            authenticator.close()


def authenticators() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "timely authenticator"]


def test_the_authenticator_lives_as_long_as_the_context_of_a_process_with_keys(tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    context = SharedContext(8, str(tmp_path))
    context.acquire()
    assert len(authenticators()) == 1
    context.release()
    assert authenticators() == []
    assert context.zmq.closed


def test_without_keys_there_is_no_authenticator_and_with_bad_ones_no_context(tmp_path: Path) -> None:
    context = SharedContext(8)
    context.acquire()
    context.release()
    with pytest.raises(ConfigError):
        SharedContext(8, str(tmp_path))
    make_keys(str(tmp_path)).chmod(0o644)
    with pytest.raises(ConfigError):
        load_keys(str(tmp_path))
    assert authenticators() == []
