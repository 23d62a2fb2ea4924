"""The configuration of a run: how many workers, where they are, and which bounds they respect.

A cluster consists of `processes` processes with `workers` threads each; worker `i` is thread `i % workers` of process
`i // workers`. A `Config` describes the cluster from the point of view of one process. It comes from the environment
(which `timely run` sets for the processes it starts, as any cluster manager can), from a script's own options, or from
a test. The default is one worker.

Every process has one address, `ipc://PATH` or `tcp://HOST:PORT`. Each of its threads listens at an endpoint derived
from it: `PATH.0`, `PATH.1`, ... or `PORT`, `PORT + 1`, ..., so a process with W workers uses W consecutive ports.
Addresses that other machines can reach require CURVE keys, which `timely keys` makes, and are refused without them.

>>> config = Config(processes=2, workers=2, process=1, addresses=("ipc:///tmp/a", "ipc:///tmp/b"))
>>> config.peers, config.first_worker, config.endpoint(3)
(4, 2, 'ipc:///tmp/b.1')
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from timely.errors import ConfigError

FIRST_PORT = 2101
MAX_WORKERS = 1024
PROGRESS_MODES = ("demand", "eager")
ACCUMULATIONS = ("worker", "process", "cluster")
LONGEST_SECONDS = 1_000_000
"""Timeouts of sockets and threads cannot be longer than a few weeks."""
_IPC_PATH_BYTES = 103  # the lowest limit among systems: 104 with the final zero

_WHOLE = (Integral, Integral | None)
_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("processes", "workers", "process", "queue_bytes", "frame_bytes", "report_rounds"), Integral),
    **dict.fromkeys(("rendezvous_seconds", "peer_timeout"), Real),
    **dict.fromkeys(("stall_seconds", "quiet_seconds"), Real | None),
    "spill_above": Integral | None,
}


@dataclass(frozen=True)
class Config:
    """The cluster as one of its processes sees it. Raises `ConfigError` if fields are invalid or contradictory.

    `generation` distinguishes runs: processes of another generation are not admitted. At the start, processes wait for
    each other for up to `rendezvous_seconds`. Later, a peer that has not answered for `peer_timeout` seconds is given
    up. `curve_dir` is the directory with the cluster's keys.

    `queue_bytes` bounds the data that operators have not received yet; beyond it, sources wait (see
    `timely.dataflow.outstanding`). `frame_bytes` bounds the size of one column on the wire. `progress` selects when
    workers release their progress, and `accumulation` which of them add it up before the others receive it (see
    `timely.progress`). Batches of traces with more than `spill_above` bytes are kept in files in `spill_dir` (by
    default, the directory for temporary files); without `spill_above` all are kept in memory.

    If nothing has moved in a run for `stall_seconds`, and nothing can, the run reports on stderr what holds it back
    (see `timely.worker.standstill`); None means 30, and 0 never. If a number is given, a thread also reports operators
    that run for this long, and loops in which no time completes. With `profile`, each process finally prints the cost
    of its operators. A loop that still changes after `report_rounds` rounds is reported, and again each time the number
    of its rounds has doubled; 0 means never. Work for which the program has waited for `quiet_seconds` shows its
    progress on stderr (see `timely.run.waiting`): None means 1 on a terminal, and never elsewhere; 0 means never.

    With `live`, a port, HOST:PORT or `auto`, the first process serves a page that shows what the workers do. With
    `metrics`, a port or HOST:PORT, each process serves its own to Prometheus, at this port plus its index. With
    `telemetry`, the address of a collector of OpenTelemetry, it sends metrics and the spans of epochs there.

    With `plain`, dataflows run without the optimisation pass (see `timely.dataflow.compose`), for tests of that pass.
    The default comes from the environment variable `TIMELY_PLAIN`. With `general`, only regions are left out (see
    `timely.dataflow.region`); the default comes from `TIMELY_GENERAL`.

    With `rings`, small messages between processes of one machine go through shared memory and not by sockets, where the
    system permits it (see `timely.communication.inbox`). This is the default unless `TIMELY_RINGS` is 0.

    >>> config, rest = Config.from_args(["-n", "2", "-w", "4", "-p", "1", "edges.csv"], {})
    >>> config.processes, config.workers, config.process, rest
    (2, 4, 1, ['edges.csv'])
    >>> config.addresses, config.process_of(3), config.endpoint(3)
    (('tcp://127.0.0.1:2101', 'tcp://127.0.0.1:2105'), 0, 'tcp://127.0.0.1:2104')
    >>> Config.from_environ({"TIMELY_WORKERS": "3"}).peers
    3
    >>> Config.from_environ(config.to_environ()) == config
    True
    >>> config.with_options(processes=1, workers=None, process=0, hostfile=None).peers
    4
    """

    processes: int = 1
    workers: int = 1
    process: int = 0
    addresses: tuple[str, ...] = ()
    generation: str = ""
    progress: str = "demand"
    queue_bytes: int = 64 << 20
    frame_bytes: int = 1 << 30
    rendezvous_seconds: float = 30.0
    peer_timeout: float = 5.0
    curve_dir: str | None = None
    stall_seconds: float | None = None
    profile: bool = False
    report_rounds: int = 10_000
    quiet_seconds: float | None = None
    spill_above: int | None = None
    spill_dir: str | None = None
    accumulation: str = "process"
    live: str | None = None
    metrics: str | None = None
    telemetry: str | None = None
    plain: bool = field(default_factory=lambda: os.environ.get("TIMELY_PLAIN") == "1")
    general: bool = field(default_factory=lambda: os.environ.get("TIMELY_GENERAL") == "1")
    rings: bool = field(default_factory=lambda: os.environ.get("TIMELY_RINGS", "1") == "1")

    def __post_init__(self) -> None:
        if isinstance(self.addresses, list):
            object.__setattr__(self, "addresses", tuple(self.addresses))
        self._check_numbers()
        self._check_counts()
        if self.processes > 1:
            self._check_addresses()
        for name, choices in (("progress", PROGRESS_MODES), ("accumulation", ACCUMULATIONS)):
            if (chosen := getattr(self, name)) not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {chosen!r}")
        for name in ("queue_bytes", "frame_bytes"):
            if (size := getattr(self, name)) < 1 << 16:
                raise ConfigError(f"{name} must be at least {1 << 16}, not {size}")
        if not self.rendezvous_seconds > 0:
            raise ConfigError(f"rendezvous_seconds must be positive, not {self.rendezvous_seconds}")
        for name, what in (("stall_seconds", "report"), ("quiet_seconds", "progress")):
            if (value := getattr(self, name)) is not None and not 0 <= value <= LONGEST_SECONDS:
                raise ConfigError(
                    f"{name} must be positive, or 0 for no {what}, and at most {LONGEST_SECONDS}, not {value}"
                )
        if not 1 <= self.peer_timeout <= LONGEST_SECONDS:
            raise ConfigError(f"peer_timeout must be 1 to {LONGEST_SECONDS} seconds, not {self.peer_timeout}")
        for name in ("report_rounds", "spill_above"):
            if (value := getattr(self, name)) is not None and value < 0:
                raise ConfigError(f"{name} must not be negative, but is {value}")
        if self.spill_dir is not None and not os.path.isdir(self.spill_dir):
            raise ConfigError(f"spill_dir must be a directory, but {self.spill_dir!r} is not one")
        if self.spill_dir is not None and self.spill_above is None:
            raise ConfigError(
                f"spill_dir is {self.spill_dir!r}, but spill_above is missing: set the size in bytes above which "
                "batches are kept in files there (--spill-above BYTES, TIMELY_SPILL_ABOVE)"
            )

    @property
    def peers(self) -> int:
        """The number of workers in the cluster."""
        return self.processes * self.workers

    @property
    def first_worker(self) -> int:
        """The index of this process's first worker."""
        return self.process * self.workers

    def process_of(self, worker: int) -> int:
        """Return the process that a worker belongs to."""
        return worker // self.workers

    def endpoint(self, worker: int) -> str:
        """Return the endpoint at which a worker listens."""
        process, thread = divmod(worker, self.workers)
        address = self.addresses[process]
        if address.startswith("ipc://"):
            return f"{address}.{thread}"
        host, port = split_tcp(address)
        return f"tcp://{host}:{port + thread}"

    def _check_numbers(self) -> None:
        for name, kinds in _NUMBERS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or isinstance(value, bool):
                wanted = "a whole number" if kinds in _WHOLE else "a number"
                raise ConfigError(f"{name} must be {wanted}, not {value!r:.80}")

    def _check_counts(self) -> None:
        if self.processes < 1 or self.workers < 1:
            raise ConfigError(
                f"there must be at least one process and one worker, not {self.processes} and {self.workers}"
            )
        if self.peers > MAX_WORKERS:
            raise ConfigError(
                f"{self.processes} processes of {self.workers} workers are {self.peers} workers; "
                f"at most {MAX_WORKERS} are supported"
            )
        if not 0 <= self.process < self.processes:
            raise ConfigError(
                f"process {self.process} of {self.processes}: the index must be 0 to {self.processes - 1}"
            )

    def _check_addresses(self) -> None:
        if len(self.addresses) != self.processes:
            raise ConfigError(
                f"{self.processes} processes need {self.processes} addresses, but {len(self.addresses)} are given; "
                "use 'timely run -n', which chooses addresses, or set TIMELY_PROCESSES and TIMELY_ADDRESSES"
            )
        for address in self.addresses:
            check_address(address, self.workers, self.curve_dir is not None)
        taken: dict[str, int] = {}
        for worker in range(self.peers):
            other = taken.setdefault(self.endpoint(worker), worker)
            if other != worker:
                remedy = "each process needs an address of its own"
                if self.workers > 1:
                    workers = self.workers
                    remedy = f"a process with {workers} workers uses {workers} consecutive ports, starting with its own"
                raise ConfigError(
                    f"processes {self.process_of(other)} and {self.process_of(worker)} would both listen at "
                    f"{self.endpoint(worker)}; {remedy}"
                )

    @staticmethod
    def from_environ(environ: Mapping[str, str] | None = None) -> Config:
        """Return the configuration in the variables `TIMELY_PROCESSES`, `TIMELY_WORKERS`, ..., one per field.

        `TIMELY_ADDRESSES` lists the addresses in order of the processes, separated by commas.
        """
        given = os.environ if environ is None else environ
        values = {}
        for each in fields(Config):
            text = given.get(variable(each.name), "")
            if text:
                values[each.name] = _parse(each.name, text)
        return Config(**values)

    def to_environ(self) -> dict[str, str]:
        """Return the environment variables from which `from_environ` reads this configuration."""
        environ = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool):
                environ[variable(each.name)] = str(int(value))  # also 0, where it is not the default
            elif value is not None and value != ():
                environ[variable(each.name)] = ",".join(value) if isinstance(value, tuple) else str(value)
        return environ

    @staticmethod
    def from_args(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> tuple[Config, list[str]]:
        """Return the configuration in a script's own options, and the remaining arguments.

        The options are `-w WORKERS`, `-n PROCESSES`, `-p PROCESS` and `-h HOSTFILE`; the environment supplies the rest.
        Without a host file, all processes are on this machine, at ports from 2101.

        Raises ConfigError if an option has an invalid value, or the options contradict each other.
        """
        import argparse  # here, because it takes milliseconds, and most programs pass no arguments

        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        parser.add_argument("-w", "--workers", type=int)
        parser.add_argument("-n", "--processes", type=int)
        parser.add_argument("-p", "--process", type=int)
        parser.add_argument("-h", "--hostfile")
        try:
            options, rest = parser.parse_known_args(list(arguments))
        except argparse.ArgumentError as error:
            raise ConfigError(str(error)) from None
        base = Config.from_environ(environ)
        if all(value is None for value in vars(options).values()):
            return base, rest
        return base.with_options(options.processes, options.workers, options.process, options.hostfile), rest

    def with_options(
        self, processes: int | None, workers: int | None, process: int | None, hostfile: str | None
    ) -> Config:
        """Return this configuration with the given options changed; None leaves an option as it is."""
        count = processes if processes is not None else self.processes
        threads = workers if workers is not None else self.workers
        addresses = self.addresses
        if hostfile is not None:
            addresses = hosts_of(hostfile, processes)
            count = len(addresses)
        elif len(addresses) != count:
            addresses = tuple(
                f"tcp://127.0.0.1:{FIRST_PORT + index * threads}" for index in range(count if count > 1 else 0)
            )
        index = self.process if process is None else process
        return replace(self, processes=count, workers=threads, process=index, addresses=addresses)


def variable(field: str) -> str:
    """Return the environment variable for a field of `Config`."""
    return f"TIMELY_{field.upper()}"


def _parse(field: str, text: str) -> Any:
    if field == "addresses":
        return tuple(address.strip() for address in text.split(","))
    if field in ("profile", "plain", "general", "rings"):
        if text not in ("0", "1"):
            raise ConfigError(f"{variable(field)}={text!r} in the environment: must be 0 or 1")
        return text == "1"
    if field not in _NUMBERS:
        return text
    is_whole = _NUMBERS[field] in _WHOLE
    try:
        return int(text) if is_whole else float(text)
    except ValueError:
        wanted = "a whole number" if is_whole else "a number"
        raise ConfigError(f"{variable(field)}={text!r} in the environment: must be {wanted}") from None


def read_hosts(path: str) -> tuple[str, ...]:
    """Return the addresses in a host file, which has one `HOST:PORT` per line and process; `#` starts a comment."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise ConfigError(f"cannot read host file {path}: {reason}") from None
    addresses = []
    for number, line in enumerate(lines, start=1):
        host = line.partition("#")[0].strip()
        if not host:
            continue
        address = f"tcp://{host}"
        try:
            split_tcp(address)
        except ConfigError:
            raise ConfigError(f"{path}, line {number}: {host!r} is not HOST:PORT") from None
        addresses.append(address)
    if not addresses:
        raise ConfigError(f"{path} names no host; write one HOST:PORT per line")
    return tuple(addresses)


def hosts_of(path: str, processes: int | None) -> tuple[str, ...]:
    """Return the first `processes` addresses in a host file, or all; raise `ConfigError` if there are too few."""
    addresses = read_hosts(path)
    if processes is not None and len(addresses) < processes:
        raise ConfigError(f"{path} names {len(addresses)} hosts, too few for {processes} processes")
    return addresses[:processes]


def split_tcp(address: str) -> tuple[str, int]:
    """Return the host and port of `tcp://HOST:PORT`; an IPv6 host keeps its brackets."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or any(character in bare for character in "/ []") or (":" in bare and bare == host):
        raise ConfigError(f"address {address!r} is not tcp://HOST:PORT")
    try:
        bare.encode("idna")  # as the system resolves names
    except UnicodeError:
        raise ConfigError(f"address {address!r}: {bare!r} cannot be the name of a host") from None
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ConfigError(f"address {address!r}: the port must be a number from 1 to 65535")
    return host, int(port)


def bracketed(host: str) -> str:
    """Return a host, given by its name or number, as addresses with a port have it.

    >>> bracketed("localhost"), bracketed("127.0.0.1"), bracketed("::1")
    ('localhost', '127.0.0.1', '[::1]')
    """
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether a host, as written, is this machine and cannot be reached from others."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(address: str, workers: int, protected: bool) -> None:
    """Raise `ConfigError` unless a process with `workers` workers can listen at an address."""
    if address.startswith("ipc://"):
        path = address.removeprefix("ipc://")
        if not path.startswith("/"):
            raise ConfigError(f"address {address!r} is not ipc:// followed by an absolute path")
        room = _IPC_PATH_BYTES - len(f".{workers - 1}")
        if len(os.fsencode(path)) > room:
            raise ConfigError(
                f"address {address!r}: the system allows paths of at most {room} bytes; use a shorter directory"
            )
        return
    if not address.startswith("tcp://"):
        raise ConfigError(f"address {address!r} is neither ipc://PATH nor tcp://HOST:PORT")
    host, port = split_tcp(address)
    if port + workers > 1 << 16:
        raise ConfigError(f"address {address!r}: {workers} workers need ports up to {port + workers - 1}")
    if not protected and not is_loopback(host):
        raise ConfigError(
            f"address {address!r} can be reached from other machines, and anyone who reaches it could take part; "
            "make keys with 'timely keys DIR', copy DIR to every machine, and pass --curve DIR "
            "(or set TIMELY_CURVE_DIR)"
        )
