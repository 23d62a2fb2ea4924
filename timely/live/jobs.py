"""Find the jobs of this user on this machine, by the files in the private directories of runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from timely.errors import ConfigError
from timely.live.address import TOKEN_VARIABLE, is_url
from timely.live.serving import Access
from timely.observe.presence import (
    Presence,
    fellows,
    is_alive,
    presences,
    private_directories,
    read_privately,
)

FILE = "live.json"
"""In the directory of a run: where its page is, with the token, and the processes that it belongs to."""


class LiveJob(NamedTuple):
    """A job with a page: the address of its page, the token, and its first process with that which started it."""

    url: str
    token: str
    processes: tuple[int, ...]
    certificate: str = ""
    """The file with the certificate of the page, if it uses TLS and is served by a job of this user on this machine."""


class RunProcesses(NamedTuple):
    """The processes on this machine that belong together, at least one; the first has the lowest index."""

    members: tuple[Presence, ...]

    def find(self) -> dict[int, Path | None]:
        """Return where the processes answer that still run, and those that have begun since, by their index."""
        first = self.members[0]
        if first.runs:
            return {index: each.socket for index, each in fellows(first.runs)}
        return {0: first.socket} if any(each.socket == first.socket for each in presences()) else {}


def others(runs: Mapping[str, int], expected: int) -> dict[int, Path | None]:
    """Return where the other processes answer of the runs in which this process has these indices, by theirs.

    Those with an index below `expected` are on this machine, whether they answer yet or not.
    """
    found: dict[int, Path | None] = dict.fromkeys(range(expected))
    found |= {index: each.socket for index, each in fellows(runs) if each.pid != os.getpid()}
    return {index: path for index, path in found.items() if index not in runs.values()}


def runs() -> list[RunProcesses]:
    """Return what runs of this user there are on this machine."""
    groups: list[tuple[Presence, ...]] = []
    for presence in presences():
        same = [group for group in groups if any(presence.runs.keys() & each.runs.keys() for each in group)]
        groups = [group for group in groups if group not in same]
        groups.append((presence, *(each for group in same for each in group)))
    return [
        RunProcesses(tuple(sorted(group, key=lambda each: (min(each.runs.values(), default=0), each.pid))))
        for group in groups
    ]


def pages() -> list[LiveJob]:
    """Return the pages of jobs of this user; what belongs to somebody else, or others can write, is not looked at."""
    found = []
    for directory in private_directories():
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            content: Any = read_privately(directory / FILE)
            processes, certificate = tuple(map(int, content["processes"])), str(content.get("certificate", ""))
            found.append(LiveJob(str(content["url"]), str(content["token"]), processes, certificate))
    # The first is the process that serves the page; the one that started it may live longer.
    return [job for job in found if any(is_alive(process) for process in job.processes[:1])]


def job_of(name: str | None) -> LiveJob | RunProcesses:
    """Return the run that a process's number names, or else the only one there is; or the page at an address.

    Raises ConfigError if there is none, or more than one.
    """
    if name is not None and not name.isdecimal():
        return page_at(name)
    known = runs()
    if name is not None:
        number = name.lstrip("0")
        known = [run for run in known if any(number in (str(each.pid), str(each.launcher)) for each in run.members)]
    if len(known) == 1:
        return known[0]
    if known:
        lines = "".join(f"\n  timely top {run.members[0].pid}   {run.members[0].program}" for run in known)
        raise ConfigError(f"several jobs of yours run on this machine; choose one:{lines}")
    which = "no job of yours" if name is None else f"no job of yours with process {name}"
    raise ConfigError(f"{which} runs on this machine; it can be looked at from a second after its workers have begun")


def page_at(address: str) -> LiveJob:
    """Return the page at an address. Raises ConfigError if its token is not known."""
    given = address if "://" in address else f"http://{address}"
    if not is_url(given):
        raise ConfigError(f"{address!r:.100} is not an address: give the one that the job printed, or a process number")
    parts = urlsplit(given)
    url = re.sub(r"//localhost(?=[:/])", "//127.0.0.1", f"{parts.scheme}://{parts.netloc}/")
    here = next((job for job in pages() if job.url == url), LiveJob(url, "", ()))
    token = parse_qs(parts.query).get("token", [""])[0] or os.environ.get(TOKEN_VARIABLE, "") or here.token
    if not token:
        raise ConfigError(f"{url} shows nothing without its token: give the whole address, or set {TOKEN_VARIABLE}")
    Access.check_token(f"the token of {url}", token, shortest=0)
    return LiveJob(url, token, (), here.certificate)
