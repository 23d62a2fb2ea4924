"""Configurations: where they come from, and how invalid ones are refused."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from timely.config import Config, is_loopback, read_hosts
from timely.errors import ConfigError

LOCAL = ("tcp://127.0.0.1:2101", "tcp://127.0.0.1:2103")


def test_the_default_is_one_worker() -> None:
    assert Config.from_environ({}) == Config()
    assert Config().peers == 1


def test_a_configuration_survives_the_environment() -> None:
    config = Config(2, 2, 1, LOCAL, "run", "eager", 1 << 20, 1 << 20, 2.5, 3.5, "/keys", accumulation="cluster")
    assert Config.from_environ(config.to_environ()) == config


@pytest.mark.parametrize("name", ["profile", "plain", "general", "rings"])
@pytest.mark.parametrize("value", [False, True])
def test_what_is_switched_off_or_on_survives_the_environment(name: str, value: bool) -> None:
    config = Config(**{name: value})  # type: ignore[arg-type]
    assert Config.from_environ(config.to_environ()) == config


def test_addresses_may_be_a_list() -> None:
    config = Config(processes=2, addresses=[*LOCAL])  # type: ignore[arg-type]
    assert config == Config.from_environ(config.to_environ()) == Config(processes=2, addresses=LOCAL)


def test_workers_are_counted_over_processes() -> None:
    config = Config(processes=2, workers=2, process=1, addresses=LOCAL)
    assert (config.peers, config.first_worker) == (4, 2)
    assert [config.process_of(worker) for worker in range(4)] == [0, 0, 1, 1]
    assert [config.endpoint(worker)[-4:] for worker in range(4)] == ["2101", "2102", "2103", "2104"]


def test_the_place_for_batches_comes_from_the_environment(tmp_path: Path) -> None:
    config = Config(spill_above=0, spill_dir=str(tmp_path))
    assert Config.from_environ(config.to_environ()) == config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"processes": 0}, "at least one process"),
        ({"workers": 0}, "at least one process and one worker"),
        ({"workers": "2"}, "workers must be a whole number, not '2'"),
        ({"workers": 2.0}, r"workers must be a whole number, not 2\.0"),
        ({"peer_timeout": None}, "peer_timeout must be a number.*not None"),
        ({"workers": 5000}, "at most 1024"),
        ({"process": 1}, "process 1 of 1"),
        ({"accumulation": "host"}, "accumulation must be one of worker, process, cluster, not 'host'"),
        ({"processes": 2}, "2 processes need 2 addresses, but 0 are given"),
        ({"progress": "lazy"}, "demand, eager, not 'lazy'"),
        ({"queue_bytes": 10}, "queue_bytes must be at least"),
        ({"peer_timeout": 0.5}, "peer_timeout must be 1 to 1000000 seconds, not 0.5"),
        ({"peer_timeout": inf}, "not inf"),
        ({"peer_timeout": nan}, "not nan"),
        ({"stall_seconds": -1}, "stall_seconds must be positive, or 0 for no report"),
        ({"stall_seconds": inf}, "at most 1000000, not inf"),
        ({"frame_bytes": 10}, "frame_bytes must be at least"),
        ({"rendezvous_seconds": 0}, "must be positive"),
        ({"spill_above": -1}, "spill_above must not be negative"),
        ({"spill_dir": "/nowhere"}, "spill_dir must be a directory"),
        ({"spill_dir": "/"}, r"spill_above is missing: .*--spill-above BYTES"),
        (
            {"processes": 2, "addresses": ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")},
            "processes 0 and 1 would both listen at tcp://127.0.0.1:1; each process needs an address of its own",
        ),
        (
            {"processes": 2, "workers": 2, "addresses": ("tcp://127.0.0.1:1", "tcp://127.0.0.1:2")},
            "would both listen at tcp://127.0.0.1:2; a process with 2 workers uses 2 consecutive ports, starting with",
        ),
        ({"processes": 2, "workers": 3, "addresses": LOCAL}, "processes 0 and 1 .* 3 consecutive ports"),
        ({"processes": 2, "addresses": ("udp://a:1", "udp://b:1")}, "neither ipc://PATH nor tcp://HOST:PORT"),
        ({"processes": 2, "addresses": ("tcp://a", "tcp://b")}, "not tcp://HOST:PORT"),
        ({"processes": 2, "addresses": ("tcp://a..b:1", "tcp://b:1")}, "'a..b' cannot be the name of a host"),
        ({"processes": 2, "addresses": ("tcp://localhost:0", "tcp://b:1")}, "from 1 to 65535"),
        ({"processes": 2, "addresses": ("tcp://localhost:x", "tcp://b:1")}, "from 1 to 65535"),
        ({"processes": 2, "workers": 2, "addresses": ("tcp://localhost:65535", "tcp://b:1")}, "ports up to 65536"),
        ({"processes": 2, "addresses": ("ipc://a", "ipc://b")}, "absolute path"),
        ({"processes": 2, "addresses": (f"ipc:///{'x' * 120}", "ipc:///b")}, "at most 101 bytes"),
        ({"processes": 2, "addresses": ("tcp://10.0.0.1:1", "tcp://10.0.0.2:1")}, "timely keys"),
    ],
)
def test_an_invalid_configuration_is_refused_with_the_reason(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Config(**changes)


def test_other_machines_are_allowed_with_keys() -> None:
    Config(processes=2, addresses=("tcp://10.0.0.1:1", "tcp://[2001:db8::1]:1"), curve_dir="/keys")


@pytest.mark.parametrize(
    ("host", "answer"),
    [("localhost", True), ("127.0.0.2", True), ("[::1]", True), ("0.0.0.0", False), ("host", False), ("[::]", False)],
)
def test_only_this_machine_is_loopback(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_a_variable_that_is_not_a_number_is_named() -> None:
    with pytest.raises(ConfigError, match=r"TIMELY_WORKERS='two'.*whole number"):
        Config.from_environ({"TIMELY_WORKERS": "two"})


def test_arguments_that_are_not_ours_are_returned() -> None:
    config, rest = Config.from_args(["-w", "2", "input.txt", "--verbose"], environ={})
    assert config == Config(workers=2)
    assert rest == ["input.txt", "--verbose"]


def test_processes_without_a_host_file_are_on_this_machine() -> None:
    config, _ = Config.from_args(["-n", "2", "-w", "2", "-p", "1"], environ={})
    assert config == Config(2, 2, 1, LOCAL)


def test_without_options_the_environment_decides() -> None:
    environ = Config(2, 2, 1, LOCAL, "run").to_environ()
    assert Config.from_args(["input.txt"], environ) == (Config(2, 2, 1, LOCAL, "run"), ["input.txt"])


def test_an_argument_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="-w"):
        Config.from_args(["-w", "two"], environ={})


def test_a_host_file_has_an_address_a_line_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# the cluster\n127.0.0.1:2101  # first\n\n[::1]:2101\n")
    assert read_hosts(str(path)) == ("tcp://127.0.0.1:2101", "tcp://[::1]:2101")
    config, _ = Config.from_args(["-h", str(path), "-p", "1"], environ={})
    assert (config.processes, config.process) == (2, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("localhost:2101\nlocalhost\n", "line 2: 'localhost' is not HOST:PORT"),
        ("a b:1\n", "line 1"),
        ("127.0.0.1:2101\na..b:2102\n", "line 2: 'a..b:2102'"),
        (f"{'a' * 64}:2101\n", "line 1"),
        ("::1:2101\n", "line 1"),
        ("# nothing\n", "names no host"),
    ],
)
def test_errors_of_a_host_file_name_file_and_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        read_hosts(str(path))
    assert str(path) in str(caught.value)


def test_a_host_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_hosts(str(tmp_path / "hosts"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not a text file"):
        read_hosts(str(tmp_path / "binary"))


def test_more_processes_than_hosts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("localhost:2101\n")
    with pytest.raises(ConfigError, match="names 1 hosts, too few for 2 processes"):
        Config.from_args(["-h", str(path), "-n", "2"], environ={})


def test_missing_addresses_are_refused_with_the_ways_to_give_them() -> None:
    with pytest.raises(ConfigError, match="'timely run -n', which chooses addresses, or set TIMELY_PROCESSES and"):
        Config.from_environ({"TIMELY_PROCESSES": "2"})
