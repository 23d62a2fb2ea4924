"""Finding the jobs of this user, and no others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from timely.errors import ConfigError, TransportError
from timely.live.client import View, events
from timely.live.jobs import FILE, Job, job_of, jobs
from timely.run.live import serve_live


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
    return {job.url[-8:] for job in jobs() if job.token == "secret"}


def test_a_job_is_found_by_its_process_as_long_as_that_lives(place: Path) -> None:
    note(place, "aaaaaaaa", [os.getpid(), 1])
    note(place, "bbbbbbbb", [2**22 + 1])
    assert ours(place) == {"aaaaaaaa"}
    assert job_of(str(os.getpid())).token == "secret"
    with pytest.raises(ConfigError, match="no job of yours with process 999999999 has a live view"):
        job_of("999999999")


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


def test_without_a_name_there_must_be_one_job(place: Path) -> None:
    note(place, "aaaaaaaa", [os.getpid()])
    note(place, "bbbbbbbb", [os.getpid()])
    with pytest.raises(ConfigError, match=r"choose one:\n  timely top \d+ "):
        job_of(None)


def test_an_address_needs_its_token_unless_the_job_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert job_of("http://127.0.0.1:8400/?token=abc") == Job("http://127.0.0.1:8400/", "abc", ())
    with pytest.raises(ConfigError, match="shows nothing without its token"):
        job_of("example.org:8400")
    monkeypatch.setenv("TIMELY_LIVE_TOKEN", "xyz")
    assert job_of("https://example.org") == Job("https://example.org/", "xyz", ())
    for wrong in ("ftp://example.org", "127.0.0.1:99999", "127.0.0.1:x", "http://[::1", "http://"):
        with pytest.raises(ConfigError, match="is not an address"):
            job_of(wrong)


def test_a_viewer_is_told_why_a_page_does_not_answer() -> None:
    page = serve_live(0)
    try:
        url, port = page.url.split("?")[0], re.search(r":(\d+)/", page.url)
        assert port is not None
        assert job_of(f"localhost:{port[1]}").url == url
        with pytest.raises(TransportError, match="status 401: open the address"):
            next(events(Job(url, "wrong", ())))
        view = View()
        for event, data in events(job_of(page.url)):
            if view.take(event, data) and view.ticks == 2:
                break
        assert view.workers == []
    finally:
        page.close()
    with pytest.raises(TransportError, match="has the job ended"):
        next(events(Job(url, "wrong", ())))


def test_a_page_that_is_closed_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = serve_live(0)
    assert [path.name.startswith("timely-run-") for path in tmp_path.iterdir()] == [True]
    page.close()
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
        url, token = page.url.split("?")[0], job_of(page.url).token
        assert url.startswith("https://")
        for name in (str(os.getpid()), page.url, url):
            assert next(events(job_of(name)))[0] == "tick"
        with pytest.raises(TransportError, match=r"is not trusted here .*SSL_CERT_FILE"):
            next(events(Job(url, token, ())))
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        assert next(events(Job(url, token, ())))[0] == "tick"
        with pytest.raises(TransportError, match="cannot read the certificate"):
            next(events(Job(url, token, (), str(tmp_path / "absent"))))
    finally:
        page.close()
