"""Find the jobs of this user that have a live view, by the files in the private directories of runs."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from timely.errors import ConfigError
from timely.live.address import TOKEN_VARIABLE, is_url

FILE = "live.json"
"""In the directory of a run: where its page is, with the token, and the processes that it belongs to."""
_DIRECTORIES = "timely-run-*"


class Job(NamedTuple):
    """A job with a live view: the address of its page, the token, and its first process with that which started it."""

    url: str
    token: str
    processes: tuple[int, ...]
    certificate: str = ""
    """The file with the certificate of the page, if it uses TLS and is served by a job of this user on this machine."""


def jobs() -> list[Job]:
    """Return the jobs of this user; what belongs to somebody else, or others can write, is not looked at."""
    found = []
    for place in sorted({tempfile.gettempdir(), "/tmp"}):
        for directory in sorted(Path(place).glob(_DIRECTORIES)):
            with suppress(OSError, ValueError, KeyError, TypeError):
                if _is_private(directory):
                    content = json.loads((directory / FILE).read_text())
                    processes, certificate = tuple(map(int, content["processes"])), str(content.get("certificate", ""))
                    found.append(Job(str(content["url"]), str(content["token"]), processes, certificate))
    return [job for job in found if any(_is_alive(process) for process in job.processes[:1])]


def job_of(name: str | None) -> Job:
    """Return the job that a process's number or an address names, or else the only one there is.

    Raises ConfigError if there is none, or more than one.
    """
    if name is not None and not name.isdecimal():
        return _at(name)
    known = jobs()
    matching = [job for job in known if name is None or int(name) in job.processes]
    if len(matching) == 1:
        return matching[0]
    if name is None and matching:
        lines = "".join(f"\n  timely top {job.processes[0]}   {job.url}" for job in matching)
        raise ConfigError(f"several jobs of yours have a live view; choose one:{lines}")
    which = "no job of yours" if name is None else f"no job of yours with process {name}"
    raise ConfigError(f"{which} has a live view on this machine: start it with 'timely run --live'")


def _at(address: str) -> Job:
    given = address if "://" in address else f"http://{address}"
    if not is_url(given):
        raise ConfigError(f"{address!r:.100} is not an address: give the one that the job printed, or a process number")
    parts = urlsplit(given)
    url = f"{parts.scheme}://{parts.netloc}/".replace("//localhost", "//127.0.0.1")
    here = next((job for job in jobs() if job.url == url), Job(url, "", ()))
    token = parse_qs(parts.query).get("token", [""])[0] or os.environ.get(TOKEN_VARIABLE, "") or here.token
    if not token:
        raise ConfigError(f"{url} shows nothing without its token: give the whole address, or set {TOKEN_VARIABLE}")
    return Job(url, token, (), here.certificate)


def _is_private(directory: Path) -> bool:
    for path, mode in ((directory, stat.S_IFDIR | 0o700), (directory / FILE, stat.S_IFREG | 0o600)):
        status = path.lstat()
        if status.st_uid != os.getuid() or status.st_mode != mode:
            return False
    return True


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
