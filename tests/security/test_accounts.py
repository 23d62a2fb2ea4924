"""An attacker with another account on the machine: files and sockets of a run are for the account that runs it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from differential.trace.storage import Storage, is_mapped
from tests.integration.launcher.launching import SCRIPTS, Run
from tests.unit.communication.networks import free_ports
from timely.capture import EventFileWriter
from timely.capture.event import Messages
from timely.communication.curve import KEY_FILE, load_keys, make_keys
from timely.errors import CaptureError, ConfigError

NOBODY = 65534
TALK = SCRIPTS / "talk.py"

ATTEMPTS = """
import os, pathlib, socket, sys

def attempt(what, action):
    try:
        print(what, "yes", action())
    except OSError as error:
        print(what, type(error).__name__)

def connect(path):
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(path)

place, pid = pathlib.Path(sys.argv[1]), int(sys.argv[2])
name = os.listdir(place)[0]
attempt("list", lambda: os.listdir(place / name))
attempt("connect", lambda: connect(str(place / name / "0.0")))
attempt("look", lambda: connect(str(place / name / f"process.{pid}")))
attempt("note", lambda: open(place / name / f"process.{pid}.json"))
attempt("create", lambda: (place / name / "report.0").write_text("forged"))
attempt("rename", lambda: (place / name).rename(place / "mine"))
attempt("remove", lambda: (place / name).rmdir())
attempt("environ", lambda: pathlib.Path(f"/proc/{pid}/environ").read_bytes())
attempt("descriptors", lambda: os.listdir(f"/proc/{pid}/fd"))
attempt("memory", lambda: open(f"/proc/{pid}/mem", "rb"))
attempt("signal", lambda: os.kill(pid, 10))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory for temporary files that is everybody's, as `/tmp` is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o1777)
        yield Path(directory)


@pytest.fixture
def mask() -> Iterator[None]:
    """A mask that leaves all that is made to everybody, unless it is made for its owner."""
    former = os.umask(0)
    yield
    os.umask(former)


def python_of_everybody() -> str:
    """Return an interpreter that another account may run."""
    for path in ("/usr/bin/python3", "/usr/local/bin/python3", os.path.realpath(sys.executable)):
        try:
            if not subprocess.run([path, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], timeout=30).returncode:
                return path
        except OSError:
            continue
    pytest.skip("there is no Python that another account may run")


@pytest.mark.lengthy
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_account_can_neither_read_nor_write_nor_end_a_run(place: Path) -> None:
    python = python_of_everybody()
    run = Run("run", "-n", "2", TALK, "listen", environ={"TMPDIR": str(place)})
    try:
        pid = run.until_started(2)[0]
        tried = subprocess.run(
            [python, "-c", ATTEMPTS, str(place), str(pid)],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert tried.returncode == 0, tried.stderr
        whats = (
            "list",
            "connect",
            "look",
            "note",
            "create",
            "rename",
            "remove",
            "environ",
            "descriptors",
            "memory",
            "signal",
        )
        assert tried.stdout.splitlines() == [f"{what} PermissionError" for what in whats]
        run.send(signal.SIGTERM)
        assert run.end() == 143
    finally:
        run.close()


@pytest.mark.lengthy
def test_ports_of_a_run_have_keys_even_on_a_single_machine(place: Path) -> None:
    hosts = place / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    run = Run("run", "--hostfile", hosts, TALK, "listen", environ={"TMPDIR": str(place)})
    try:
        run.until_started(2)
        (file,) = place.glob(f"timely-*/{KEY_FILE}")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        run.send(signal.SIGTERM)
        assert run.end() == 143
    finally:
        run.close()


@pytest.mark.parametrize("options", [["-n", "2"], ["--hostfile"]])
def test_no_list_of_processes_shows_a_secret(options: list[str], place: Path) -> None:
    make_keys(str(place / "keys"))
    if options == ["--hostfile"]:
        hosts = place / "hosts"
        hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
        options = [*options, str(hosts), "--curve", str(place / "keys")]
    run = Run("run", *options, TALK, "listen")
    try:
        pids = run.until_started(2)
        environ = Path(f"/proc/{pids[0]}/environ").read_bytes().split(b"\0")
        (generation,) = [text.split(b"=")[1] for text in environ if text.startswith(b"TIMELY_GENERATION=")]
        assert len(generation) == 16
        for pid in (*pids, run.process.pid):
            shown = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "comm"))
            for secret in (generation, *load_keys(str(place / "keys"))):
                assert secret not in shown
        run.send(signal.SIGTERM)
        run.end()
        for secret in load_keys(str(place / "keys")):
            assert secret.decode() not in run.output + run.error
    finally:
        run.close()


def test_only_their_owner_can_read_keys_whatever_the_umask(mask: None, tmp_path: Path) -> None:
    path = make_keys(str(tmp_path / "keys"))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]


def test_a_link_in_place_of_a_key_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="exists"):
        make_keys(str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("damage", [0, 1])
def test_an_error_about_keys_does_not_show_them(damage: int, tmp_path: Path) -> None:
    path = make_keys(str(tmp_path))
    halves = path.read_bytes().split()
    path.write_bytes(b"\n".join(half[: len(half) - damage] for half in reversed(halves)))
    with pytest.raises(ConfigError) as caught:
        load_keys(str(tmp_path))
    for half in halves:
        assert half[:20].decode() not in str(caught.value)


def test_spilled_batches_are_in_unnamed_files_that_only_their_owner_can_read(mask: None, place: Path) -> None:
    (column,) = Storage(above=0, directory=str(place)).empty([1000])
    assert is_mapped(column)
    assert os.listdir(place) == []
    files = [entry for entry in Path("/proc/self/fd").iterdir() if _target(entry).startswith(str(place))]
    assert len(files) == 1
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # the one with which the directory was read
        return ""


@pytest.mark.parametrize(("given", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_captured_files_have_the_mode_that_the_umask_allows(given: int, mode: int, mask: None, tmp_path: Path) -> None:
    os.umask(given)
    writer = EventFileWriter(tmp_path / "events")
    writer.push(Messages((0,), [np.int64(1)]))
    writer.close()
    assert stat.S_IMODE((tmp_path / "events").stat().st_mode) == mode


def test_a_link_in_place_of_a_captured_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "events").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CaptureError, match="already exists"):
        EventFileWriter(tmp_path / "events")
    assert not (tmp_path / "elsewhere").exists()
