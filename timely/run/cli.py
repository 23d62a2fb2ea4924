"""The command `timely`: run a script on several processes, and make keys for clusters of several machines."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from timely.config import Config, hosts_of, variable
from timely.errors import ConfigError, TimelyError
from timely.run.environment import report_unknown_variables
from timely.run.large_pages import begin_again
from timely.run.launched import INTERRUPTED, run_target, write_lines
from timely.worker.garbage import keep_short

_USAGE_ERROR = 2

_RUN_EXAMPLES = """\
examples:
  timely run script.py                     one worker in one process, like 'python script.py'
  timely run -w 2 script.py                two workers, as threads of one process
  timely run -n 2 script.py --size 10      two processes on this machine; '--size 10' goes to the script
  timely run -n 2 -m package.module        a module instead of a script

at ports instead of private sockets: a file with one HOST:PORT a line, all of this machine
  timely run --hostfile hosts script.py    one process a line, with keys made for this run

several machines: write such a file with lines of all of them, make keys once and copy both to every machine, then
  timely keys ~/cluster
  timely run --hostfile hosts --process 0 --curve ~/cluster script.py      on the first machine
  timely run --hostfile hosts --process 1 --curve ~/cluster script.py      on the second

All processes run the same script and must build the same dataflows. The first one that fails ends the others, and its
exit status is that of the command. A worker may call sys.exit(0) only if all others end, too, within 2 seconds.
Ctrl-C (SIGINT), SIGTERM and SIGHUP give all processes 10 seconds to clean up; a second Ctrl-C, or Ctrl-\\ (SIGQUIT),
ends them at once. A process that has not begun to end after 2 seconds is stopped or inside compiled code, and is
killed. What is ignored when the command starts, as SIGHUP is under nohup, stays ignored.
A process that is stopped, or ends, before all have met is named within 5 seconds. While processes wait for others, they
print every 5 seconds for which.
Full searches for garbage in cycles leave out what survived earlier ones: objects in cycles may stay for longer than
'python script.py' would keep them, but capabilities that were forgotten in one are found at the latest when everything
stands still.
SIGUSR1 to the command, or to one of its processes, prints what the workers do and wait for. It never ends the command,
but in the first moments, before Python has read a line of it.
Other settings come from the environment: TIMELY_PROGRESS (demand or eager), TIMELY_ACCUMULATION (worker, process or
cluster), TIMELY_FRAME_BYTES, TIMELY_RENDEZVOUS_SECONDS, TIMELY_REPORT_ROUNDS;
and, with --process, TIMELY_GENERATION. A variable of that form that is none of ours is reported.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (those of the process by default); return its exit status."""
    options, unknown = _parser().parse_known_args(arguments)
    options.is_process = arguments is None
    try:
        _refuse_unknown(options.command, unknown)
        status: int = options.action(options)
    except TimelyError as error:
        print(f"timely: {error}", file=sys.stderr)
        return _USAGE_ERROR if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="timely", description="Run timely and differential dataflow programs.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print which version is installed, and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run a script on one or more processes",
        description="Run a script on one or more processes.",
        epilog=_RUN_EXAMPLES,
        usage="timely run [-n PROCESSES] [-w WORKERS] [--stall SECONDS] [--profile] [--peer-timeout SECONDS]\n"
        "                  [--queue-bytes BYTES] [--spill-above BYTES [--spill-dir DIR]]\n"
        "                  [--hostfile FILE [--process INDEX] [--curve DIR]]\n"
        "                  (SCRIPT | -m MODULE) [ARGUMENTS...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    run.add_argument("-n", "--processes", type=int, help="number of processes (default 1, or as many as hosts)")
    run.add_argument("-w", "--workers", type=int, help="worker threads in each process (default 1)")
    run.add_argument("--hostfile", metavar="FILE", help="where the processes are: HOST:PORT a line, # comments")
    run.add_argument(
        "--process", type=int, metavar="INDEX", help="start only the process of this line of the host file, from 0"
    )
    run.add_argument("--curve", metavar="DIR", help="directory with the keys made by 'timely keys'")
    run.add_argument(
        "--stall",
        type=float,
        metavar="SECONDS",
        help="report who holds everything up when nothing moves for so long (30; 0 is never)",
    )
    run.add_argument("--profile", action="store_true", help="print at the end what each operator has cost")
    run.add_argument(
        "--peer-timeout", metavar="SECONDS", type=float, help="give up a process silent for so long (default 5)"
    )
    run.add_argument(
        "--queue-bytes", metavar="BYTES", type=int, help="inputs wait while a worker has more queued than this (64 MiB)"
    )
    run.add_argument("--spill-above", type=int, metavar="BYTES", help="keep batches of more than BYTES in files")
    run.add_argument("--spill-dir", metavar="DIR", help="where these files are (default: where temporary files are)")
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, and pass it what follows")
    run.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    run.set_defaults(action=_run)
    keys = commands.add_parser(
        "keys",
        help="make keys for a cluster of several machines",
        description="Make the keys with which processes on several machines recognise each other. Copy DIR to all of "
        "them, in secret: who has it can take part.",
    )
    keys.add_argument("directory", metavar="DIR")
    keys.set_defaults(action=_keys)
    return parser


class _Version(argparse.Action):
    """Prints the version; it is looked for only when asked for, which takes longer than all other options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        try:
            version = metadata.version("timely-dataflow")
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"timely {version}")
        parser.exit()


def _refuse_unknown(command: str, unknown: list[str]) -> None:
    """Raise `ConfigError` where there are arguments that the command does not know."""
    if not unknown:
        return
    name = unknown[0]
    what = f"has no option {name}" if name.startswith("-") else f"takes no argument {name!r}"
    shown = "'timely run --help' shows those it has, and a script's own follow its name"
    if command != "run":
        shown = f"'timely {command} --help' shows what it takes"
    raise ConfigError(f"'timely {command}' {what}; {shown}")


def _keys(options: argparse.Namespace) -> int:
    from timely.communication.curve import make_keys

    print(make_keys(options.directory))
    return 0


def _run(options: argparse.Namespace) -> int:
    is_module = options.module is not None
    target = [*(options.module or ()), *options.script]  # the parser ends a module's arguments at '--'
    if not is_module and target[:1] == ["--"]:
        del target[0]
    _check_target(target, is_module)
    config = _config(options)
    if options.process is None:
        addresses = _hosts_here(options)
        processes = len(addresses) or (1 if options.processes is None else options.processes)
        if processes != 1:
            from timely.run.launcher import launch

            report_unknown_variables(config)
            arguments = ["-m", "timely.run.launched", *(["-m"] if is_module else []), *target]
            return launch(config, processes, arguments, addresses)
    if options.is_process:
        begin_again()
        keep_short()
    report_unknown_variables(config)
    os.environ.update(config.to_environ())
    write_lines()
    if not sys.flags.safe_path:
        del sys.path[0]  # where this command was looked for
    return run_target(target, is_module, safe_path=sys.flags.safe_path)


def _hosts_here(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the addresses in the host file, which must all be of this machine; none without such a file."""
    if options.hostfile is None:
        return ()
    from timely.communication.endpoint import is_here

    addresses = hosts_of(options.hostfile, options.processes)
    for number, address in enumerate(addresses):
        if not is_here(address):
            raise ConfigError(
                f"{options.hostfile}: {address.removeprefix('tcp://')} is not of this machine, so it cannot be started "
                f"from here; start each process on its own machine: --process {number} for this one, and with "
                "--curve DIR the same keys for all (made by 'timely keys DIR')"
            )
    return addresses


def _config(options: argparse.Namespace) -> Config:
    """Return the cluster the options ask for; what they leave open comes from the environment."""
    where = {variable(name) for name in ("processes", "process", "addresses")}  # which options alone say here
    base = Config.from_environ({name: text for name, text in os.environ.items() if name not in where})
    if options.curve is not None:
        base = replace(base, curve_dir=options.curve)
    if options.profile:
        base = replace(base, profile=True)
    if options.stall is not None:
        base = replace(base, stall_seconds=options.stall)
    if options.peer_timeout is not None:
        base = replace(base, peer_timeout=options.peer_timeout)
    if options.queue_bytes is not None:
        base = replace(base, queue_bytes=options.queue_bytes)
    if options.spill_above is not None:
        base = replace(base, spill_above=options.spill_above)
    if options.spill_dir is not None:
        base = replace(base, spill_dir=options.spill_dir)
    if options.hostfile is None and options.process is not None:
        raise ConfigError("--process says which line of a host file this is; it needs --hostfile FILE")
    if options.hostfile is None and options.curve is not None:
        raise ConfigError("--curve says where the keys of a host file's processes are; it needs --hostfile FILE")
    if options.process is None:
        workers = base.workers if options.workers is None else options.workers
        return replace(base, processes=1, workers=workers, process=0, addresses=())
    return base.with_options(options.processes, options.workers, options.process, options.hostfile)


def _check_target(target: list[str], is_module: bool) -> None:
    """Raise `ConfigError` unless there is something to run."""
    if not target:
        raise ConfigError("nothing to run: give a script, or -m and a module ('timely run --help' shows examples)")
    name = target[0]
    if is_module:
        places = [] if sys.flags.safe_path else [os.getcwd()]
        sys.path[:0] = places
        try:
            missing = importlib.util.find_spec(name) is None
        except (ImportError, ValueError):
            missing = True
        finally:
            del sys.path[: len(places)]
        if missing:
            looked = " and ".join([*places, "what is installed"])
            raise ConfigError(f"no module named {name!r} (looked in {looked})")
        return
    try:
        with open(name, "rb"):
            pass
    except OSError as error:
        raise ConfigError(f"cannot read script {name}: {error.strerror}") from None
