"""`timely systemd`: the unit of a service that runs a program, and starts it again after a failure.

All processes of one machine belong to one unit, which starts them by `timely run`. They communicate by private sockets
and need no keys. With a host file, each machine has a unit for its line, and systemd hands the keys to it as a
credential: only the service can read its copy, whoever owns the file.

The service runs as a user of its own, whom systemd makes for it (`DynamicUser`), and can write to its own directory of
state and temporary files alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import sys
from pathlib import Path

from timely.communication.curve import KEY_FILE
from timely.errors import ConfigError

_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?[BKMGTPE%]?|infinity")
_STOP_SECONDS = 20
"""Programs have ten seconds to clean up, and processes that do not react are killed within five."""
_TEMPLATE = """\
# Written by 'timely systemd'. Copy it to /etc/systemd/system/{name}.service, and run
#   systemctl daemon-reload && systemctl enable --now {name}
[Unit]
Description={description}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=2
TimeoutStopSec={stop}
KillMode=mixed
{settings}DynamicUser=yes
StateDirectory={name}
WorkingDirectory=%S/{name}
LimitNOFILE=65536
NoNewPrivileges=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictSUIDSGID=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
"""


def text(options: argparse.Namespace) -> str:
    """Return the unit that the options of `timely systemd` ask for."""
    if not options.target:
        raise ConfigError("nothing to run: give the script and its arguments")
    script = Path(options.target[0])
    name = options.name or re.sub(r"[^A-Za-z0-9]+", "-", script.stem).strip("-")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}", name):
        raise ConfigError(f"{name!r} is not a valid name for a unit: use --name with letters, digits, dots and hyphens")
    if (options.hostfile is None) != (options.process is None):
        raise ConfigError("give both --hostfile FILE and --process INDEX, or neither")
    if options.hostfile is not None and options.curve is None:
        raise ConfigError("--hostfile needs --curve DIR, with the keys that 'timely keys DIR' has made")
    if options.hostfile is None and options.curve is not None:
        raise ConfigError("--curve names the keys of processes on several machines, so it needs --hostfile FILE")
    if options.hostfile is not None and options.processes != 1:
        raise ConfigError("--hostfile states how many processes there are: leave out -n")
    if options.processes < 1 or options.workers < 1:
        raise ConfigError("there must be at least one process and one worker")
    if options.memory and not _SIZE.fullmatch(options.memory):
        raise ConfigError(f"--memory is a size as systemd writes it, such as 8G, not {options.memory!r:.80}")
    command = [str(_timely()), "run"]
    settings = []
    if options.hostfile is None:
        command += ["-n", str(options.processes)]
    else:
        command += ["--hostfile", str(Path(options.hostfile).absolute()), "--process", str(options.process)]
        settings.append(f"LoadCredential={KEY_FILE}:{_value(str(Path(options.curve).absolute() / KEY_FILE))}")
    if options.workers != 1:
        command += ["-w", str(options.workers)]
    words = [_word(each) for each in command]
    if options.hostfile is not None:
        words += ["--curve", "%d"]  # systemd's directory of credentials
    if options.state:
        words += ["--state", f"%S/{name}/state"]
    words += [_word(each) for each in [str(script.absolute()), *options.target[1:]]]
    if options.memory:
        settings.append(f"MemoryMax={options.memory}")  # this setting has no specifiers, so % is one sign
    return _TEMPLATE.format(
        name=name,
        description=_value(f"{script.name} on timely dataflow"),
        command=" ".join(words),
        stop=_STOP_SECONDS,
        settings="".join(f"{line}\n" for line in settings),
    )


def remarks(options: argparse.Namespace) -> list[str]:
    """Return why the service would not start on this machine, or nothing."""
    paths = [_timely(), Path(options.target[0]), *([Path(options.hostfile)] if options.hostfile else [])]
    reasons = filter(None, (_hindrance(path.absolute()) for path in paths))
    return [f"on this machine the service would not start: {reason}" for reason in reasons]


def _timely() -> Path:
    """Return where the command is."""
    found = shutil.which("timely", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    return Path(found).absolute() if found else Path("/usr/bin/timely")


def _hindrance(path: Path) -> str | None:
    """Return why a service, which runs as a user of its own, cannot read a file; None if it can."""
    try:
        modes = [(each, each.stat().st_mode) for each in (*reversed(path.parents), path)]
    except OSError as error:
        return f"{path}: {error.strerror}"
    for each, mode in modes:
        if not mode & (stat.S_IROTH if each == path else stat.S_IXOTH):
            return f"other users cannot {'read' if each == path else 'enter'} {each}"
    return None


def _value(text: str) -> str:
    """Return a text as the value of a setting, in which % would begin a specifier."""
    if "\n" in text:
        raise ConfigError(f"{text!r:.80} contains a line end, which no setting of a unit can have")
    return text.replace("%", "%%")


def _word(text: str) -> str:
    r"""Return a text as one word of a command, which systemd takes as it is written here.

    >>> print(_word("edges.csv"), _word("100 %"), _word('a "b" $HOME'))
    edges.csv "100 %%" "a \"b\" $$HOME"
    """
    # systemd would replace $NAME by a variable of the service.
    plain = _value(text).replace("$", "$$")
    if re.fullmatch(r"[^\s\"'\\;]+", plain):
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", help="name of the unit (default: that of the script)")
    parser.add_argument("-n", "--processes", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument("-w", "--workers", type=int, default=1, help="worker threads per process (default: 1)")
    parser.add_argument("--hostfile", metavar="FILE", help="where the processes are, if on several machines")
    parser.add_argument("--process", type=int, metavar="INDEX", help="the line of the host file for this machine")
    parser.add_argument("--curve", metavar="DIR", help="directory with the keys made by 'timely keys'")
    parser.add_argument("--state", action="store_true", help="keep durable collections in the service's directory")
    parser.add_argument("--memory", metavar="SIZE", help="end the service if it takes more, such as 8G")
    parser.add_argument("target", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="the script and its arguments")
