"""Finding the jobs of this user, and no others."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import tempfile
import threading
import time as clock
import warnings
from pathlib import Path

import pytest

import timely.live.jobs as live_jobs
import timely.live.live as live_module
import timely.observe.presence as observe_presence
from timely.config import Config
from timely.errors import ConfigError, TransportError
from timely.live.client import JobView, events
from timely.live.jobs import FILE, LiveJob, RunProcesses, job_of, others, page_at, pages
from timely.observe.presence import Presence, note as note_process, socket_of
from timely.run.answering import _begun as answers, answer_looks
from timely.run.live import serve_live


@pytest.fixture
def looked_at() -> None:
    """Let this process answer whoever looks at it: a page has it do so, in a directory that outlives the page."""
    answer_looks(Config(), at_once=True)
    answering = answers[os.getpid()]
    end = clock.monotonic() + 30
    while answering._presence is None:
        assert clock.monotonic() < end, "nobody can look at this process"
        clock.sleep(0.01)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def note(place: Path, name: str, processes: list[int], directory: int = 0o700, file: int = 0o600) -> Path:
    made = place / f"timely-run-{name}"
    made.mkdir(mode=0o700)
    content = {"url": f"http://127.0.0.1:1/{name}", "token": "secret", "processes": processes}
    (made / FILE).write_text(json.dumps(content))
    (made / FILE).chmod(file)
    made.chmod(directory)
    return made


def ours(place: Path) -> set[str]:
    return {job.url[-8:] for job in pages() if job.token == "secret"}


def test_a_page_is_found_as_long_as_its_process_lives(place: Path) -> None:
    note(place, "aaaaaaaa", [os.getpid(), 1])
    note(place, "bbbbbbbb", [2**22 + 1])
    assert ours(place) == {"aaaaaaaa"}


@pytest.mark.parametrize(("directory", "file"), [(0o755, 0o600), (0o770, 0o600), (0o700, 0o644)])
def test_what_others_can_enter_or_write_is_not_read(place: Path, directory: int, file: int) -> None:
    note(place, "aaaaaaaa", [os.getpid()], directory, file)
    assert ours(place) == set()


def test_a_link_or_a_file_of_another_user_is_not_followed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = note(place, "aaaaaaaa", [os.getpid()])
    (place / "timely-run-bbbbbbbb").symlink_to(real)
    assert ours(place) == {"aaaaaaaa"}
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert ours(place) == set()


def test_damaged_files_are_passed_over(place: Path) -> None:
    made = note(place, "aaaaaaaa", [os.getpid()])
    for text in ("", "[]", '{"url": 1}', '{"url": "x", "token": "secret", "processes": ["x"]}'):
        (made / FILE).write_text(text)
        assert ours(place) == set()


def process(place: Path, name: str, pid: int, runs: dict[str, int], launcher: int = 0) -> Presence:
    """Note a process in a directory of its own."""
    made = place / f"timely-run-{name}"
    made.mkdir(mode=0o700)
    presence = Presence(pid, launcher, f"{name}.py", runs, socket_of(made, pid))
    note_process(presence)
    return presence


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processes that run."""
    alive = {101, 102, 103, 104}
    for module in (observe_presence, live_jobs):
        monkeypatch.setattr(module, "is_alive", lambda pid: pid in alive)
    return alive


def test_processes_of_one_run_are_one_job_wherever_their_directories_are(place: Path, alive: set[int]) -> None:
    process(place, "aaaaaaaa", 103, {"r": 0}, launcher=99)
    process(place, "bbbbbbbb", 101, {"r": 1}, launcher=99)
    process(place, "cccccccc", 102, {})
    process(place, "dddddddd", 105, {"r": 2})
    for name in ("101", "103", "99"):
        run = job_of(name)
        assert isinstance(run, RunProcesses)
        assert [each.pid for each in run.members] == [103, 101], "the dead one is not shown"
    assert run.find().keys() == {0, 1}
    alive.discard(103)
    assert run.find().keys() == {1}, "what is left is still looked at"
    alive.discard(101)
    assert run.find() == {}
    with pytest.raises(ConfigError, match="no job of yours with process 999999999 runs on this machine"):
        job_of("999999999")


@pytest.mark.parametrize("name", ["0", "9" * 5000])
def test_a_number_of_no_process_names_no_job(place: Path, alive: set[int], name: str) -> None:
    process(place, "aaaaaaaa", 101, {})
    with pytest.raises(ConfigError, match=f"no job of yours with process {name} runs on this machine"):
        job_of(name)


def test_without_a_name_there_must_be_one_job(place: Path, alive: set[int]) -> None:
    with pytest.raises(ConfigError, match="no job of yours runs on this machine"):
        job_of(None)
    process(place, "aaaaaaaa", 101, {})
    only = job_of(None)
    assert isinstance(only, RunProcesses)
    assert [*only.find()] == [0]
    process(place, "bbbbbbbb", 102, {"r": 0})
    with pytest.raises(
        ConfigError, match=r"choose one:\n  timely top 101   aaaaaaaa.py\n  timely top 102   bbbbbbbb.py"
    ):
        job_of(None)
    alive.clear()
    assert only.find() == {}


def test_a_process_finds_the_others_of_its_run(place: Path, alive: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    process(place, "aaaaaaaa", 101, {"r": 0})
    second = process(place, "bbbbbbbb", 102, {"r": 1})
    process(place, "cccccccc", 103, {"another": 2})
    monkeypatch.setattr(os, "getpid", lambda: 101)
    assert others({"r": 0}, 0) == {1: second.socket}
    assert others({"r": 0}, 3) == {1: second.socket, 2: None}, "it is on this machine, and does not answer yet"
    assert others({}, 0) == {}


def test_an_address_needs_its_token_unless_the_job_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_at("http://127.0.0.1:8400/?token=abc") == LiveJob("http://127.0.0.1:8400/", "abc", ())
    with pytest.raises(ConfigError, match="shows nothing without its token"):
        page_at("example.org:8400")
    monkeypatch.setenv("TIMELY_LIVE_TOKEN", "xyz")
    assert page_at("localhost.example.org:8400").url == "http://localhost.example.org:8400/"
    assert page_at("https://example.org") == LiveJob("https://example.org/", "xyz", ())
    for wrong in ("ftp://example.org", "127.0.0.1:99999", "127.0.0.1:x", "http://[::1", "http://"):
        with pytest.raises(ConfigError, match="is not an address"):
            page_at(wrong)


def test_a_token_that_no_header_can_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMELY_LIVE_TOKEN", "the-content-of-a-file\n")
    with pytest.raises(ConfigError, match=r"the token of http://127.0.0.1:8400/ must be printable ASCII"):
        page_at("http://127.0.0.1:8400/")


def test_a_viewer_is_told_why_a_page_does_not_answer() -> None:
    page = serve_live(0)
    try:
        url, port = page.url.split("?")[0], re.search(r":(\d+)/", page.url)
        assert port is not None
        assert page_at(f"localhost:{port[1]}").url == url
        with pytest.raises(TransportError, match="status 401: open the address"):
            next(events(LiveJob(url, "wrong", ())))
        view = JobView()
        for event, data in events(page_at(page.url)):
            if view.take(event, data) and view.ticks == 2:
                break
        assert view.workers == []
    finally:
        page.close()
    with pytest.raises(TransportError, match="has the job ended"):
        next(events(LiveJob(url, "wrong", ())))


@pytest.mark.usefixtures("looked_at")
def test_a_page_that_is_closed_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = serve_live(0)
    assert [path.name.startswith("timely-run-") for path in tmp_path.iterdir()] == [True]
    page.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("looked_at")
def test_a_page_that_cannot_be_noted_is_not_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = warnings.showwarning, {each.name for each in threading.enumerate()}

    def full(path: Path, content: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(live_module, "write_privately", full)
    with pytest.raises(TransportError, match=r"cannot note where .*: No space left on device: .*live\.json"):
        serve_live(0)
    absent = tmp_path / "absent"
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="cannot use the certificate"):
        serve_live(0, certificate=(str(absent), str(absent)))
    assert warnings.showwarning is before[0]
    assert {each.name for each in threading.enumerate()} <= before[1]  # those of other tests may have ended meanwhile
    assert list(tmp_path.iterdir()) == []


def test_a_page_with_a_certificate_of_its_own_is_shown_to_its_user_and_to_others_who_trust_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    make += ["-subj", "/CN=jobs.example", "-addext", "subjectAltName=DNS:jobs.example,IP:127.0.0.1"]
    try:
        subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("there is no openssl to make a certificate")
    page = serve_live("127.0.0.1:0", certificate=(certificate, key))
    try:
        url, token = page.url.split("?")[0], page_at(page.url).token
        assert url.startswith("https://")
        for name in (page.url, url):
            assert next(events(page_at(name)))[0] == "tick"
        with pytest.raises(TransportError, match=r"is not trusted here .*SSL_CERT_FILE"):
            next(events(LiveJob(url, token, ())))
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        assert next(events(LiveJob(url, token, ())))[0] == "tick"
        with pytest.raises(TransportError, match="cannot read the certificate"):
            next(events(LiveJob(url, token, (), str(tmp_path / "absent"))))
    finally:
        page.close()
