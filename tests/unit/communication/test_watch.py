"""Watching connections: when a worker is woken for a lost peer, and when the watch names the peer itself."""

from __future__ import annotations

import struct
import threading
import time as clock
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
import zmq

from timely.communication import watch
from timely.communication.watch import GRACE_SECONDS, REPORT_SECONDS, LinkWatch, heartbeat


class Watched:
    """A watch over two simulated links and a simulated listener; `wakes` grows when it wakes the worker."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], described: dict[int, str | None]) -> None:
        self.links: list[Any] = [
            SimpleNamespace(peer=peer, lost_at=None, monitor=context.socket(zmq.PAIR)) for peer in described
        ]
        self.links[0].monitor.bind("inproc://first")
        self.listener: Any = SimpleNamespace(monitor=context.socket(zmq.PAIR))
        self.context = context
        self.wakes: list[None] = []
        self.watch: Any = LinkWatch(
            self.links, self.listener, lambda: self.wakes.append(None), lambda link: described[link.peer]
        )

    def close(self) -> None:
        self.watch.close()
        for watched in (*self.links, self.listener):
            watched.monitor.close()


@pytest.fixture
def watched() -> Iterator[Watched]:
    with zmq.Context() as context:
        made = Watched(context, {1: "worker 1 is gone", 2: None})
        yield made
        made.close()


def lose(watched: Watched) -> list[int]:
    """Break the first connection; return the list to which its events are added."""
    events: list[int] = []
    link = watched.links[0]

    def observe(event: int, now: float) -> None:
        events.append(event)
        link.lost_at = now

    link.observe = observe
    with watched.context.socket(zmq.PAIR) as other:
        other.connect("inproc://first")
        other.send_multipart([struct.pack("=hi", zmq.EVENT_DISCONNECTED, 0), b"inproc://first"])
    return events


def test_a_worker_is_woken_some_time_after_a_loss(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "GRACE_SECONDS", 0.02)
    events = lose(watched)
    end = clock.monotonic() + 30
    while not watched.wakes:
        assert clock.monotonic() < end
        clock.sleep(0.001)
    assert events == [zmq.EVENT_DISCONNECTED]


def test_events_before_the_watch_is_closed_are_recorded(watched: Watched) -> None:
    watched.watch._ended.ring()
    watched.watch._thread.join(30)
    events = lose(watched)
    assert watched.links[0].monitor.poll(30_000)
    assert events == []
    watched.watch.close()
    assert events == [zmq.EVENT_DISCONNECTED]


def test_a_process_that_does_not_close_its_connections_ends(watched: Watched) -> None:
    assert watched.watch._thread.daemon


def test_a_worker_is_woken_for_a_lost_peer_after_its_grace_until_the_peer_is_named_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.links[0].lost_at = 100.0
    for now, wakes, text in (
        (100.0 + GRACE_SECONDS, 0, ""),
        (100.125 + GRACE_SECONDS, 1, ""),
        (100.0 + REPORT_SECONDS, 2, ""),
        (100.125 + REPORT_SECONDS, 3, "worker 1 is gone\n"),
        (110.0, 3, ""),
    ):
        monkeypatch.setattr(watch, "clock", SimpleNamespace(monotonic=lambda: now))  # noqa: B023
        watched.watch._report_losses()
        assert len(watched.wakes) == wakes
        assert capsys.readouterr().err == text


def test_a_lost_peer_without_a_description_is_not_reported(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.links[1].lost_at = 100.0
    monkeypatch.setattr(watch, "clock", SimpleNamespace(monotonic=lambda: 110.0))
    watched.watch._report_losses()
    assert capsys.readouterr().err == ""
    assert len(watched.wakes) == 1


def test_the_watch_looks_again_soon_while_a_lost_peer_is_not_named(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched.watch._poll_milliseconds() is None
    watched.links[1].lost_at = 100.0
    assert watched.watch._poll_milliseconds() == 250
    monkeypatch.setattr(watch, "clock", SimpleNamespace(monotonic=lambda: 110.0))
    watched.watch._report_losses()
    assert watched.watch._poll_milliseconds() is None


@pytest.mark.parametrize("peer_timeout", [1.5, 2.0, 5.0, 60.0])
def test_a_silent_peer_is_given_up_early_enough_to_be_named_in_time(peer_timeout: float) -> None:
    with zmq.Context() as context, context.socket(zmq.PUSH) as end:
        heartbeat(end, peer_timeout)
        asked, silent = 1000 * peer_timeout / 8, 1000 * peer_timeout / 2
        assert (end.heartbeat_ivl, end.heartbeat_timeout) == (int(asked), int(silent))
        assert (asked + silent) / 1000 + GRACE_SECONDS < peer_timeout


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_socket_error_ends_the_thread_silently_only_if_the_socket_was_closed_meanwhile(
    is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = Event()
    raised: list[str] = []

    class Monitor:
        def __init__(self, closed: bool) -> None:
            self.closed = closed

    class Poller:
        def register(self, *_: object) -> None: ...

        def poll(self, _: object) -> None:
            assert closed.wait(10), "the test has not closed the socket"
            raise zmq.ZMQError(zmq.ENOTSOCK)

    monkeypatch.setattr(zmq, "Poller", Poller)
    monkeypatch.setattr(threading, "excepthook", lambda hook: raised.append(hook.exc_type.__name__))
    listener: Any = SimpleNamespace(monitor=Monitor(is_closed))
    made: Any = LinkWatch([], listener, lambda: None, lambda link: None)
    closed.set()
    made._thread.join(10)
    made._ended.close()
    assert not made._thread.is_alive()
    assert raised == ([] if is_closed else ["ZMQError"])
