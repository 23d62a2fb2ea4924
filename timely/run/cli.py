"""The command `timely`: run a script on several processes, and make keys for clusters of several machines."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from timely.config import Config, hosts_of, variable
from timely.errors import ConfigError, TimelyError
from timely.live import option as live
from timely.live.output import printing
from timely.observe.notices import notify
from timely.run import elsewhere
from timely.run.environment import report_unknown_variables
from timely.run.failure import USAGE_ERROR
from timely.run.launched import INTERRUPTED, handle_signals, run_target, write_lines
from timely.run.memory import restart_with_large_pages
from timely.run.state import add_options, add_state, pass_on, reserved
from timely.worker.garbage import keep_short

_RUN_EXAMPLES = """\
examples:
  timely run script.py                     one worker in one process, like 'python script.py'
  timely run -w 2 script.py                two workers, as threads of one process
  timely run -n 2 script.py --size 10      two processes on this machine; '--size 10' is passed to the script
  timely run -n 2 -m package.module        a module instead of a script
  timely run -n 2 --raw script.py | sort   what the script prints goes to another program as it is

at ports instead of private sockets: a file with one HOST:PORT per line, all on this machine
  timely run --hostfile hosts script.py    one process per line, with keys made for this run

after a crash: programs with durable collections go on where they stopped
  timely run -n 2 --state DIR --restart 10 script.py
  timely state DIR                         what is in the directory; --verify reads and checks everything

several machines: write such a file with the lines of all machines, make keys once, copy both to every machine, then run
  timely keys ~/cluster
  timely run --hostfile hosts --process 0 --curve ~/cluster script.py      on the first machine
  timely run --hostfile hosts --process 1 --curve ~/cluster script.py      on the second

on processes that another system has placed on its machines
  srun -n 8 timely run --on slurm script.py
  mpirun -n 8 timely run --on mpi script.py
  timely run --on ray -n 8 script.py       actors of Ray, which start again with --restart

All processes run the same script and must build the same dataflows. The first process that fails ends the others, and
its exit status becomes that of the command. A worker may call sys.exit(0) once its inputs are closed, if all others
end within 2 seconds, or if all workers call it.
Ctrl-C (SIGINT), SIGTERM and SIGHUP give all processes 10 seconds to clean up; a second Ctrl-C, or Ctrl-\\ (SIGQUIT),
ends them at once. A process that has not begun to end after 2 seconds is stopped or inside compiled code, and is
killed. A single process has as long as it takes, until a second signal ends it. Signals that are ignored when the
command starts, as SIGHUP is under nohup, stay ignored.
A process that stops or ends before all processes are connected is named within 5 seconds. Processes that wait for
others print every 4 seconds which ones.
Full garbage collections skip objects that have survived earlier ones. So objects in reference cycles may live longer
than under 'python script.py', but forgotten capabilities in such a cycle are found when the run stands still.
SIGUSR1 to the command, or to one of its processes, prints what the workers do and wait for. It ends the command only in
the first moments, while Python itself is starting.
Other settings come from the environment: TIMELY_PROGRESS (demand or eager), TIMELY_ACCUMULATION (worker, process or
cluster), TIMELY_FRAME_BYTES, TIMELY_RENDEZVOUS_SECONDS, TIMELY_REPORT_ROUNDS; and, with --process, TIMELY_GENERATION.
Unknown variables that begin with TIMELY_ or DIFFERENTIAL_ are reported.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (by default, those of the process); return its exit status."""
    given = live.completed(sys.argv[1:] if arguments is None else arguments)
    options, unknown = _parser(next(iter(given), None)).parse_known_args(given)
    options.is_process = arguments is None
    try:
        _refuse_unknown(options.command, unknown)
        status: int = options.action(options)
    except TimelyError as error:
        notify(f"{error}")
        return USAGE_ERROR if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser(command: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="timely", description="Run timely and differential dataflow programs.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the installed version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run a script on one or more processes",
        description="Run a script on one or more processes.",
        epilog=_RUN_EXAMPLES,
        usage="timely run [-n PROCESSES] [-w WORKERS] [--stall SECONDS] [--profile] [--peer-timeout SECONDS]\n"
        "                  [--queue-bytes BYTES] [--spill-above BYTES [--spill-dir DIR]]\n"
        "                  [--state DIR] [--restart TIMES] [--on SYSTEM] [--raw]\n"
        "                  [--live [PORT]] [--metrics PORT] [--telemetry URL]\n"
        "                  [--hostfile FILE [--process INDEX] [--curve DIR]]\n"
        "                  (SCRIPT | -m MODULE) [ARGUMENTS...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    run.add_argument("-n", "--processes", type=int, help="number of processes (default: 1, or the number of hosts)")
    run.add_argument("-w", "--workers", type=int, help="worker threads per process (default: 1)")
    run.add_argument("--hostfile", metavar="FILE", help="where the processes are: one HOST:PORT per line, # comments")
    on_line = "start only the process on this line of the host file, counted from 0"
    run.add_argument("--process", type=int, metavar="INDEX", help=on_line)
    run.add_argument("--curve", metavar="DIR", help="directory with the keys made by 'timely keys'")
    run.add_argument(
        "--stall",
        type=float,
        metavar="SECONDS",
        help="report what holds the run back when nothing moves for this long (default: 30; 0 means never)",
    )
    run.add_argument("--raw", action="store_true", help="pass on standard output without process numbers")
    run.add_argument("--profile", action="store_true", help="print the cost of each operator at the end")
    run.add_argument(
        "--peer-timeout",
        metavar="SECONDS",
        type=float,
        help="treat a process as lost after this many seconds of silence (default: 5)",
    )
    run.add_argument(
        "--queue-bytes",
        metavar="BYTES",
        type=int,
        help="inputs wait while a worker has more than this queued (default: 64 MiB)",
    )
    run.add_argument("--spill-above", type=int, metavar="BYTES", help="keep batches of more than BYTES in files")
    run.add_argument("--spill-dir", metavar="DIR", help="where to keep them (default: with temporary files)")
    add_options(run)
    elsewhere.add_options(run)
    live.add_option(run)
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module with the arguments that follow")
    run.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    run.set_defaults(action=_run)
    _add_keys(commands)
    add_state(commands)
    elsewhere.add_commands(commands, command)
    live.add_commands(commands, _viz)
    return parser


def _add_keys(commands: Any) -> None:
    keys = commands.add_parser(
        "keys",
        help="make keys for a cluster of several machines",
        description="Make the keys by which processes on several machines recognise each other. Copy DIR to all of "
        "them and keep it secret: whoever has it can take part.",
    )
    keys.add_argument("directory", metavar="DIR")
    keys.set_defaults(action=_keys)


class _Version(argparse.Action):
    """Prints the version. Looking it up takes longer than parsing all other options, so it is done only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        try:
            version = metadata.version("timely-dataflow")
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        with printing():
            print(f"timely {version}")
        parser.exit()


def _refuse_unknown(command: str, unknown: list[str]) -> None:
    """Raise `ConfigError` if there are arguments that the command does not know."""
    if not unknown:
        return
    name = unknown[0]
    what = f"has no option {name}" if name.startswith("-") else f"takes no argument {name!r}"
    help_ = "'timely run --help' lists its options, and a script's own options follow its name"
    if command != "run":
        help_ = f"'timely {command} --help' lists its arguments"
    raise ConfigError(f"'timely {command}' {what}; {help_}")


def _keys(options: argparse.Namespace) -> int:
    from timely.communication.curve import make_keys

    path = make_keys(options.directory)
    with printing(encoding="utf-8", errors="surrogateescape"):
        print(path)
    return 0


def _viz(options: argparse.Namespace) -> int:
    target, is_module = _target(options)
    from timely.run.drawing import draw

    return draw(options.output, target, is_module)


def _target(options: argparse.Namespace) -> tuple[list[str], bool]:
    """Return the script or module with its arguments, and whether it is a module; raise ConfigError for nothing."""
    is_module = options.module is not None
    target = [*(options.module or ()), *options.script]  # the parser ends a module's arguments at '--'
    if not is_module and target[:1] == ["--"]:
        del target[0]
    _check_target(target, is_module)
    return target, is_module


def _run(options: argparse.Namespace) -> int:
    target, is_module = _target(options)
    config = _config(options)
    pass_on(options.state)
    if options.on is not None:
        return elsewhere.run_on(options, config, target, safe_path=_leave_out_own_directory())
    with reserved(options.state, options.restart):
        return _run_target(options, config, target, is_module)


def _run_target(options: argparse.Namespace, config: Config, target: list[str], is_module: bool) -> int:
    """Start processes for a target, or run it in this one; return the exit status."""
    if options.process is None:
        addresses = _hosts_here(options)
        processes = len(addresses) or (1 if options.processes is None else options.processes)
        if processes != 1 or options.restart:
            from timely.run.launcher import launch

            report_unknown_variables(config)
            arguments = ["-m", "timely.run.launched", *(["-m"] if is_module else []), *target]
            return launch(config, processes, arguments, addresses, options.restart, options.raw)
    if options.is_process:
        restart_with_large_pages()
        keep_short()
        handle_signals(is_supervised=False)
    report_unknown_variables(config)
    os.environ.update(config.to_environ())
    write_lines()
    return run_target(target, is_module, safe_path=_leave_out_own_directory())


def _leave_out_own_directory() -> bool:
    """Have imports no longer search the directory of this command; return whether they leave out the program's, too."""
    if not sys.flags.safe_path:
        del sys.path[0]
    return bool(sys.flags.safe_path)


def _hosts_here(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the addresses in the host file, all of which must be on this machine; none without a host file."""
    if options.hostfile is None:
        return ()
    from timely.communication.endpoint import is_here

    addresses = hosts_of(options.hostfile, options.processes)
    for number, address in enumerate(addresses):
        if not is_here(address):
            raise ConfigError(
                f"{options.hostfile}: {address.removeprefix('tcp://')} is not on this machine, so it cannot be started "
                f"from here; start each process on its own machine (--process {number} for this one), all with the "
                "same keys (made by 'timely keys DIR' and given by --curve DIR)"
            )
    return addresses


def _config(options: argparse.Namespace) -> Config:
    """Return the configuration that the options ask for; the environment supplies the rest."""
    where = {variable(name) for name in ("processes", "process", "addresses")}  # here, only options decide these
    base = Config.from_environ({name: text for name, text in os.environ.items() if name not in where})
    given = {
        "curve_dir": options.curve,
        "profile": options.profile or None,
        "live": None if options.live is None else live.checked(options.live),
        "metrics": options.metrics,
        "telemetry": options.telemetry,
        "stall_seconds": options.stall,
        "peer_timeout": options.peer_timeout,
        "queue_bytes": options.queue_bytes,
        "spill_above": options.spill_above,
        "spill_dir": options.spill_dir,
    }
    base = replace(base, **{name: value for name, value in given.items() if value is not None})
    if options.hostfile is None and options.process is not None:
        raise ConfigError("--process selects a line of a host file, so it needs --hostfile FILE")
    elsewhere.check(options)
    if options.hostfile is None and options.on is None and options.curve is not None:
        raise ConfigError(
            "--curve names the keys of processes on several machines, so it needs --hostfile FILE or --on SYSTEM"
        )
    if options.restart < 0:
        raise ConfigError(f"--restart is how often to start all processes again, at least 0, not {options.restart}")
    if options.restart and options.process is not None:
        raise ConfigError("--restart starts all processes again, so all must be on this machine: leave out --process")
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
            searched = " and ".join([*places, "the installed packages"])
            raise ConfigError(f"no module named {name!r} (searched {searched})")
        return
    try:
        with open(name, "rb"):
            pass
    except OSError as error:
        raise ConfigError(f"cannot read script {name}: {error.strerror}") from None
