"""Where the page may be served, and how `--live [PORT]` is read."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from timely.errors import ConfigError
from timely.live.address import CERTIFICATE_VARIABLE, KEY_VARIABLE, TOKEN_VARIABLE, address_of
from timely.live.live import begin_telemetry
from timely.live.option import completed

TOKEN = "a token that is long enough"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["run", "--live", "script.py"], ["run", "--live", "auto", "script.py"]),
        (["run", "--live"], ["run", "--live", "auto"]),
        (["run", "--live", "8500", "8500"], ["run", "--live", "8500", "8500"]),
        (["run", "--live=8500", "script.py"], ["run", "--live=8500", "script.py"]),
        (["run", "--live", "[::1]:0", "script.py"], ["run", "--live", "[::1]:0", "script.py"]),
        (
            ["run", "-n", "2", "--profile", "--live", "-m", "x"],
            ["run", "-n", "2", "--profile", "--live", "auto", "-m", "x"],
        ),
        (["run", "-n2", "--live", "-w", "2", "x.py"], ["run", "-n2", "--live", "auto", "-w", "2", "x.py"]),
        (["run", "--raw", "--live", "x.py"], ["run", "--raw", "--live", "auto", "x.py"]),
        (["run", "script.py", "--live"], ["run", "script.py", "--live"]),
        (["run", "-m", "module", "--live"], ["run", "-m", "module", "--live"]),
        (["run", "--", "--live"], ["run", "--", "--live"]),
        (["run", "--stall", "--live"], ["run", "--stall", "--live"]),
        (["keys", "--live"], ["keys", "--live"]),
        ([], []),
    ],
)
def test_the_port_of_the_option_may_be_left_out(given: list[str], expected: list[str]) -> None:
    assert completed(given) == expected


@pytest.mark.parametrize("text", ["x", "example.org:80", "127.0.0.1:", "70000", "-1", "1.2.3:80"])
def test_what_is_no_address_is_refused(text: str) -> None:
    if text == "127.0.0.1:":
        assert address_of(text).port is None
        return
    with pytest.raises(ConfigError, match=r"the live page \(--live\) takes a port"):
        address_of(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "[::]"])
def test_an_address_that_others_reach_takes_a_token_and_tls(
    host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("certificate", "key"):
        (tmp_path / name).touch()
    files = str(tmp_path / "certificate"), str(tmp_path / "key")
    for token, certificate in ((None, None), (TOKEN, None), (None, files)):
        with pytest.raises(ConfigError, match="needs a token and TLS"):
            address_of(f"{host}:8400", token, certificate)
    assert address_of(f"{host}:8400", TOKEN, files).host == host.strip("[]")
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    monkeypatch.setenv(CERTIFICATE_VARIABLE, files[0])
    with pytest.raises(ConfigError, match="set both"):
        address_of(f"{host}:8400")
    monkeypatch.setenv(KEY_VARIABLE, files[1])
    assert address_of(f"{host}:8400").certificate == files
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="cannot read"):
        address_of("8400")


def test_a_token_is_long_and_another_one_each_time() -> None:
    tokens = {address_of("").token for _ in range(10)}
    assert len(tokens) == 10
    assert min(map(len, tokens)) >= 32
    with pytest.raises(ConfigError, match="at least 16"):
        address_of("", "short")


def test_a_port_in_use_is_refused_and_without_one_the_next_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot be served at 127.0.0.1:{port}: Address already in use"):
            address_of(str(port)).listen()
    first, second = address_of("").listen(), address_of("").listen()
    with first, second:
        assert first.getsockname() != second.getsockname()


@pytest.mark.parametrize("token", ["é" * 20, " " + TOKEN, TOKEN + "\n", "a token\tof your own"])
def test_a_token_that_no_header_can_have_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="must be printable ASCII"):
        address_of("8400", token)


@pytest.mark.parametrize("text", ["localhost:4318", "http://", "http://:4318", "http://localhost:99999", "http://[::1"])
def test_what_is_no_address_of_a_collector_is_refused_at_once(text: str) -> None:
    with pytest.raises(ConfigError, match="--telemetry takes the address of a collector"):
        begin_telemetry(text, 0)()
