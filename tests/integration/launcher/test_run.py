"""`timely run` with real processes: how they meet, how they end, and that they leave nothing behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time as clock
from pathlib import Path

import pytest

from tests.integration.launcher.conftest import Start
from tests.integration.launcher.launching import ROOT, SCRIPTS
from tests.unit.communication.networks import free_ports
from timely.communication.curve import make_keys
from timely.run.memory import are_offered

TALK = SCRIPTS / "talk.py"

# Running


def test_two_processes_of_two_workers_meet(start: Start) -> None:
    run = start("run", "-n", "2", "-w", "2", TALK, "meet")
    assert run.end() == 0
    assert sorted(run.lines) == ["[0] received [[1, 2, 3], [0, 2, 3]]\n", "[1] received [[0, 1, 3], [0, 1, 2]]\n"]
    assert run.error == ""


def test_one_process_runs_without_prefix_and_with_its_arguments(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, neighbour\nprint(sys.argv[1:], __name__, neighbour.__name__)\n")
    (tmp_path / "neighbour.py").write_text("")
    run = start("run", script, "-n", "5", "--option")
    assert run.end() == 0
    assert run.output == "['-n', '5', '--option'] __main__ neighbour\n"


@pytest.mark.lengthy
@pytest.mark.parametrize("processes", [1, 2])
def test_a_directory_of_our_name_in_the_working_directory_is_not_imported(
    start: Start, tmp_path: Path, processes: int
) -> None:
    for place in ("timely", "scripts", "bin"):
        (tmp_path / place).mkdir()
    (tmp_path / "timely" / "__init__.py").write_text("raise ImportError('this is not what was started')\n")
    script = tmp_path / "scripts" / "script.py"
    script.write_text("import sys, timely, differential\nprint(timely.__file__, sys.path[0])\n")
    command = tmp_path / "bin" / "command"  # `-m timely` would look here first, as `python -m` does
    command.write_text("import sys\nfrom timely.run.cli import main\nsys.exit(main())\n")
    run = start("run", "-n", str(processes), script, directory=tmp_path, command=[str(command)])
    assert run.end() == 0, run.error
    prefixes = [""] if processes == 1 else ["[0] ", "[1] "]
    assert sorted(run.lines) == [f"{prefix}{ROOT / 'timely' / '__init__.py'} {script.parent}\n" for prefix in prefixes]


@pytest.mark.lengthy
@pytest.mark.parametrize("processes", [1, 2])
def test_a_safe_path_is_safe_in_all_processes(start: Start, tmp_path: Path, processes: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nprint({str(tmp_path)!r} in sys.path)\n")
    for options, printed in (([], "True"), (["-P"], "False")):
        run = start("run", "-n", str(processes), script, command=[*options, "-m", "timely"])
        assert run.end() == 0, run.error
        assert [line.split()[-1] for line in run.lines] == [printed] * processes


TUNABLES = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"
PRINT_TUNABLES = "import os, sys\nprint(os.environ['GLIBC_TUNABLES'], sys.argv[1:], sys.flags.dev_mode)\n"


@pytest.mark.skipif(not are_offered(), reason="the system offers no large pages to those that ask")
@pytest.mark.parametrize("processes", [1, 2])
def test_processes_ask_for_large_pages(start: Start, tmp_path: Path, processes: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(PRINT_TUNABLES)
    run = start("run", "-n", str(processes), script, "a b", environ={"GLIBC_TUNABLES": ""})
    assert run.end() == 0
    prefixes = [""] if processes == 1 else ["[0] ", "[1] "]
    assert sorted(run.lines) == [f"{prefix}{TUNABLES} ['a b'] False\n" for prefix in prefixes]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_setting_of_large_pages_in_the_environment_is_kept(start: Start, tmp_path: Path, processes: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(PRINT_TUNABLES)
    given = "glibc.malloc.hugetlb=0:glibc.malloc.arena_max=2"
    run = start("run", "-n", str(processes), script, environ={"GLIBC_TUNABLES": given})
    assert run.end() == 0
    assert len(run.lines) == processes
    assert all(f"{given} [] False" in line for line in run.lines)


@pytest.mark.lengthy
@pytest.mark.parametrize(("given", "threads"), [({}, ["1", "1"]), ({"OMP_NUM_THREADS": "3"}, ["3", ""])])
def test_processes_share_the_cores_among_the_threads_of_libraries(
    start: Start, tmp_path: Path, given: dict[str, str], threads: list[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os\nprint([os.environ[name] for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS')])\n")
    environ = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "") | given
    processes = (os.cpu_count() or 1) + 1
    run = start("run", "-n", str(processes), script, environ=environ)
    assert run.end() == 0, run.error
    assert sorted(run.lines) == sorted(f"[{index}] {threads}\n" for index in range(processes))


@pytest.mark.skipif(not are_offered(), reason="the system offers no large pages to those that ask")
def test_a_command_that_begins_again_has_the_options_of_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PRINT_TUNABLES)
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "timely", "run", script, "--option"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "GLIBC_TUNABLES": "glibc.malloc.arena_max=2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == "glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1 ['--option'] True\n"


def test_a_module_runs_like_a_script(start: Start, tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    run = start("run", "-n", "2", "-m", "tool", "--option", directory=tmp_path)
    assert run.end() == 0
    assert sorted(run.lines) == ["[0] ['--option'] __main__\n", "[1] ['--option'] __main__\n"]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_package_that_cannot_be_run_is_reported_in_a_line_as_by_python(
    start: Start, processes: str, tmp_path: Path
) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "__init__.py").touch()
    run = start("run", "-n", processes, "-m", "nothing", directory=tmp_path)
    assert run.end() == 1
    line = "timely: No module named nothing.__main__; 'nothing' is a package and cannot be directly executed\n"
    assert [error for error in run.errors if "nothing" in error] in ([line], [f"[0] {line}"], [f"[1] {line}"])
    assert "Traceback" not in run.error


def test_a_module_with_a_failing_import_shows_where(start: Start, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import missing_module\n")
    run = start("run", "-m", "program", directory=tmp_path)
    assert run.end() == 1
    assert run.error.startswith("Traceback (most recent call last):\n")
    assert "program.py" in run.error
    assert run.error.endswith("ModuleNotFoundError: No module named 'missing_module'\n")


def test_a_line_printed_in_pieces_is_shown_whole_though_another_process_prints_meanwhile(
    start: Start, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(PIECES)
    run = start("run", "-n", "2", script)
    assert run.end() == 0
    assert sorted(run.lines) == ["[0] one line\n", "[1] another\n"]


PIECES = """
import os, pathlib, time

printed = pathlib.Path(__file__).with_name("printed")

class Late(str):
    def __str__(self):
        while not printed.exists():
            time.sleep(0.01)
        time.sleep(0.2)
        return str.__str__(self)

if os.environ["TIMELY_PROCESS"] == "0":
    print("one", Late("line"))
else:
    time.sleep(0.2)
    print("another")
    printed.touch()
"""


def test_standard_input_goes_to_the_first_process(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(repr(sys.stdin.read()))\n")
    run = start("run", "-n", "2", script)
    assert run.process.stdin is not None
    run.process.stdin.write("hello")
    run.process.stdin.close()
    run.process.stdin = None
    assert run.end() == 0
    assert sorted(run.lines) == ["[0] 'hello'\n", "[1] ''\n"]


def test_the_sockets_directory_is_private_and_removed(start: Start, tmp_path: Path) -> None:
    run = start("run", "-n", "2", TALK, "wait", environ={"TMPDIR": str(tmp_path)})
    run.until_started(2)
    (directory,) = tmp_path.iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    run.send(signal.SIGTERM)
    run.end()
    assert list(tmp_path.iterdir()) == []


def test_a_run_works_in_a_temporary_directory_with_a_long_name(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / ("x" * 100)
    directory.mkdir()
    assert start("run", "-n", "2", TALK, "meet", environ={"TMPDIR": str(directory)}).end() == 0


def test_processes_of_a_host_file_meet_over_tcp(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    runs = [start("run", "--hostfile", hosts, "--process", str(index), TALK, "meet") for index in range(2)]
    assert [run.end() for run in runs] == [0, 0]
    assert [run.output for run in runs] == ["received [[1]]\n", "received [[0]]\n"]


def test_a_host_file_of_this_machine_starts_all_its_processes(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    run = start("run", "--hostfile", hosts, TALK, "meet")
    assert run.end() == 0
    assert sorted(run.lines) == ["[0] received [[1]]\n", "[1] received [[0]]\n"]


# Keys


def reachable() -> str:
    """Return an address of this machine that others could reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("this machine is in no network")
        host: str = probe.getsockname()[0]
        return host


@pytest.mark.lengthy
def test_the_launcher_makes_private_keys_for_its_children(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{reachable()}:{port}\n" for port in free_ports(2)))
    run = start("run", "--hostfile", hosts, TALK, "listen", environ={"TMPDIR": str(tmp_path)})
    pids = run.until_started(2)
    (file,) = tmp_path.glob("timely-*/cluster.key")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    key, secret = file.read_bytes().split()
    for pid in (*pids, run.process.pid):
        seen = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert key not in seen
        assert secret not in seen
    run.send(signal.SIGTERM)
    run.end()
    assert not file.parent.exists()


@pytest.mark.slow
def test_two_runs_have_different_keys(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    keys = []
    for _ in range(2):
        hosts.write_text("".join(f"{reachable()}:{port}\n" for port in free_ports(2)))
        run = start("run", "--hostfile", hosts, TALK, "listen", environ={"TMPDIR": str(tmp_path)})
        run.until_started(2)
        keys += [file.read_bytes() for file in tmp_path.glob("timely-*/cluster.key")]
        run.send(signal.SIGTERM)
        run.end()
    assert len(set(keys)) == len(keys) == 2


@pytest.mark.lengthy
def test_processes_with_different_keys_name_each_other_and_count_the_attempts(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    script = tmp_path / "script.py"
    script.write_text(BOTH_UP)
    runs = []
    for index in range(2):
        make_keys(str(tmp_path / str(index)))
        options = ("--hostfile", hosts, "--process", str(index), "--curve", tmp_path / str(index))
        runs.append(start("run", *options, script, environ={"TIMELY_RENDEZVOUS_SECONDS": "2"}))
    assert [run.end() for run in runs] == [1, 1]
    for index, run in enumerate(runs):
        assert f"process {1 - index} (worker {1 - index} at tcp://127.0.0.1" in run.error
        assert "another program listens there, or the keys differ" in run.error
        assert re.search(r"[1-9]\d* connections with other keys or another protocol were turned away here", run.error)


BOTH_UP = """
import pathlib, time
from timely import Config, execute

here = pathlib.Path(__file__)
here.with_name(f"up.{Config.from_environ().process}").touch()
while len(list(here.parent.glob("up.*"))) < 2:
    time.sleep(0.01)
execute(lambda worker: None)
"""


def test_several_machines_need_keys_and_the_error_explains_how_to_make_them(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.98:2101\n192.0.2.99:2101\n")
    run = start("run", "--hostfile", hosts, "--process", "0", TALK, "meet")
    assert run.end() == 2
    assert "make keys with 'timely keys DIR', copy DIR to every machine, and pass --curve DIR" in run.error


# Ending


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_to_the_launcher_ends_all_processes_quietly(
    start: Start, signum: int, status: int, workers: str
) -> None:
    run = start("run", "-n", "2", "-w", workers, TALK, "wait", "-1")
    run.until_started(2 * int(workers))
    run.send(signum)
    assert run.end() == status
    assert run.error == ""


@pytest.mark.lengthy
@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGQUIT, 131)])
def test_a_key_at_a_terminal_ends_all_processes_quietly(start: Start, tmp_path: Path, signum: int, status: int) -> None:
    run = start("run", "-n", "2", TALK, "wait", "-1", environ={"TMPDIR": str(tmp_path)})
    run.until_started(2)
    os.killpg(run.process.pid, signum)
    assert run.end() == status
    assert run.error == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.lengthy
def test_a_program_that_ignores_quit_is_killed_and_leaves_nothing(start: Start, tmp_path: Path) -> None:
    run = start("run", "-n", "2", TALK, "stubborn", environ={"TMPDIR": str(tmp_path)})
    run.until_started(2)
    os.killpg(run.process.pid, signal.SIGQUIT)
    assert run.end() == 131
    assert list(tmp_path.iterdir()) == []


AT_ONCE = """
import os, sys, tempfile
from timely.run import cli
make, signum = tempfile.mkdtemp, int(sys.argv.pop(1))
def make_and_interrupt(*arguments, **options):
    directory = make(*arguments, **options)
    os.kill(os.getpid(), signum)
    return directory
tempfile.mkdtemp = make_and_interrupt
sys.exit(cli.main())
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_just_after_the_directory_is_made_leaves_no_directory(
    start: Start, tmp_path: Path, signum: signal.Signals
) -> None:
    code = ["-c", AT_ONCE, str(int(signum))]
    run = start("run", "-n", "2", TALK, "wait", "-1", environ={"TMPDIR": str(tmp_path)}, command=code)
    assert run.end() == 128 + signum
    assert run.error == ""
    assert list(tmp_path.iterdir()) == []


CLEANS = """
import os, sys, time
try:
    print("pid", os.getpid(), flush=True)
    while True:
        time.sleep(0.01)
finally:
    print("cleaning", flush=True)
    time.sleep(float(sys.argv[1]))
    print("cleaned", flush=True)
"""


@pytest.mark.lengthy
def test_a_program_that_is_interrupted_has_time_to_clean_up(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CLEANS)
    run = start("run", "-n", "2", script, "2")
    run.until_started(2)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert run.output.count("cleaned") == 2
    assert run.error == ""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_single_process_cleans_up_before_it_ends(start: Start, tmp_path: Path, signum: signal.Signals) -> None:
    script = tmp_path / "script.py"
    script.write_text(CLEANS)
    run = start("run", "-w", "2", script, "0")
    run.until_started(1)
    os.killpg(run.process.pid, signum)
    assert run.end() == 128 + signum
    assert "cleaned" in run.output
    assert run.error == ""


@pytest.mark.lengthy
def test_a_single_process_that_cleans_up_is_ended_by_a_second_signal(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CLEANS)
    run = start("run", script, "600")
    run.until_started(1)
    run.send(signal.SIGHUP)
    run.send(signal.SIGTERM)  # at the same moment, as when a terminal closes: this is not the second one
    run._wait_for(lambda: "cleaning" in run.output, 40, "the process does not clean up")
    clock.sleep(1.1)
    assert run.process.poll() is None
    run.send(signal.SIGTERM)
    assert run.end() == -signal.SIGTERM
    assert "cleaned" not in run.output


def test_a_second_interrupt_ends_a_program_that_cleans_up(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CLEANS)
    run = start("run", "-n", "2", script, "600")
    run.until_started(2)
    os.killpg(run.process.pid, signal.SIGINT)
    run._wait_for(lambda: run.output.count("cleaning") == 2, 40, "not all processes clean up")
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert run.error == ""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_is_ignored_when_the_command_starts_stays_so(
    start: Start, signum: signal.Signals, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, sys\nprint('pid', os.getpid(), flush=True)\nsys.stdin.read()\nos._exit(0)\n")
    code = f"import signal\nsignal.signal({signum}, signal.SIG_IGN)\nimport os, sys\n"
    code += "os.execv(sys.executable, [sys.executable, '-m', 'timely', *sys.argv[1:]])\n"
    run = start("run", "-n", "2", script, command=["-c", code])
    run.until_started(2)
    os.killpg(run.process.pid, signum)
    run.send(signal.SIGUSR1)
    run._wait_for(lambda: "no worker runs in this process" in run.error, 40, "no report was made")
    assert run.process.stdin is not None
    run.process.stdin.close()
    run.process.stdin = None
    assert run.end() == 0, run.error


@pytest.mark.lengthy
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.3])
def test_ctrl_c_while_starting_leaves_no_traceback_of_the_children(start: Start, delay: float) -> None:
    run = start("run", "-n", "2", TALK, "wait", "-1", environ={"PYTHONSTARTUP": ""})
    run._wait_for(lambda: has_children(run.process.pid), 40, "no child was started")
    clock.sleep(delay)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert "[0]" not in run.error
    assert "[1]" not in run.error


def has_children(pid: int) -> bool:
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_ctrl_c_on_a_single_process_ends_with_130_and_no_traceback(start: Start) -> None:
    run = start("run", "-w", "2", TALK, "wait", "-1")
    run.until_started(2)
    run.send(signal.SIGINT)
    assert run.end() == 130
    assert run.error == ""


def test_a_killed_process_is_named_and_ends_the_others(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "kill")
    assert run.end() == 128 + signal.SIGKILL
    assert run.error == "timely: process 1 was killed by SIGKILL\n"


def test_a_process_killed_by_a_signal_without_a_name_is_named_with_its_number(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, time\nos.kill(os.getpid(), 40) if os.environ['TIMELY_PROCESS'] == '1' else time.sleep(60)"
    )
    run = start("run", "-n", "2", script)
    assert run.end() == 128 + 40
    assert run.error == "timely: process 1 was killed by signal 40\n"


@pytest.mark.lengthy
def test_a_process_killed_from_outside_ends_the_others(start: Start) -> None:
    run = start("run", "-n", "2", "-w", "2", TALK, "wait", "-1")
    pids = run.until_started(4)
    os.kill(pids[0], signal.SIGKILL)
    assert run.end(run.promptly) == 128 + signal.SIGKILL


@pytest.mark.lengthy
def test_a_process_that_ignores_signals_is_killed(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "stubborn")
    run.until_started(2)
    run.send(signal.SIGTERM)
    assert run.end() == 143


def test_processes_end_when_the_launcher_is_killed_and_leave_nothing(start: Start, tmp_path: Path) -> None:
    run = start("run", "-n", "2", TALK, "wait", "-1", environ={"TMPDIR": str(tmp_path)})
    run.until_started(2)
    run.send(signal.SIGKILL)
    run.process.wait(40)
    run.until_gone()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.lengthy
def test_a_process_that_ignores_signals_ends_when_the_launcher_is_killed(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "stubborn")
    run.until_started(2)
    run.send(signal.SIGKILL)
    run.process.wait(40)
    run.until_gone()


def test_the_exit_status_of_a_script_is_that_of_the_command(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "exit")
    assert run.end() == 7
    assert run.error == "timely: process 1 ended with status 7\n"


@pytest.mark.lengthy
def test_a_process_that_leaves_without_a_farewell_is_reported_by_its_peer(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "leave")
    assert run.end() == 3
    assert "timely: process 0: process 1 (worker 1 at ipc://" in run.error
    assert "gone without a farewell" in run.error
    assert "Traceback" not in run.error


def test_an_error_in_a_script_is_shown_once_and_from_the_users_line(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "raise")
    assert run.end() == 1
    assert run.error.startswith(f'[1] Traceback (most recent call last):\n[1]   File "{TALK}"')
    assert run.error.endswith("[1] ValueError: no such thing\ntimely: process 1 ended with status 1\n")
    assert not any(line.startswith("[0]") for line in run.errors)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_refusal_is_a_message_and_the_users_lines_without_a_traceback(start: Start, workers: str) -> None:
    run = start("run", "-n", "2", "-w", workers, TALK, "refuse")
    assert run.end() == 1
    first, *rest = run.errors
    assert first.endswith("] timely: column 3 is not a column\n")
    assert "talk.py" in rest[0]
    assert "Traceback" not in run.error
    assert "executing.py" not in run.error
    assert len({line[:3] for line in run.errors if line.startswith("[")}) == 1


def test_options_and_not_the_environment_set_the_number_of_processes(start: Start) -> None:
    run = start("run", "-n", "2", TALK, "meet", environ={"TIMELY_PROCESSES": "3"})
    assert run.end() == 0, run.error


# Where nothing can be written


def test_an_output_that_is_full_ends_a_run_with_a_line(tmp_path: Path) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m timely run -n 2 {shlex.quote(str(TALK))} meet > /dev/full"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert ended.stderr == "timely: cannot write output: No space left on device\n"
    assert ended.returncode == 1


@pytest.mark.lengthy
@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_run_continues_when_its_output_is_closed(closed: str) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m timely run -n 2 {shlex.quote(str(TALK))} meet {closed}"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)


# Refusing to start


def test_a_command_that_cannot_run_is_refused_before_anything_starts(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("127.0.0.1:2101\n192.0.2.99:2101\n")
    cases = {
        ("run",): "nothing to run",
        ("run", "-n", "2", "missing.py"): "cannot read script missing.py: No such file or directory",
        ("run", str(tmp_path)): "Is a directory",
        ("run", "-m", "missing.module"): "no module named 'missing.module'",
        ("run", "-n", "0", str(TALK)): "at least one process",
        ("run", "--process", "1", str(TALK)): "--hostfile",
        ("run", "-n", "2", "--curve", "keys", str(TALK)): "so it needs --hostfile FILE",
        ("run", "--hostfile", str(hosts), str(TALK)): "line 1: 'localhost' is not HOST:PORT",
        ("run", "--hostfile", str(elsewhere), str(TALK)): "192.0.2.99:2101 is not on this machine",
        ("run", "--hostfile", str(hosts), "--process", "0", str(TALK)): "line 1: 'localhost' is not HOST:PORT",
        ("run", "--hostfile", "missing", "--process", "0", str(TALK)): "cannot read host file missing",
    }
    runs = {arguments: start(*arguments) for arguments in cases}
    for arguments, words in cases.items():
        assert runs[arguments].end() == 2
        assert runs[arguments].error.startswith("timely: ")
        assert words in runs[arguments].error
        assert runs[arguments].error.count("\n") == 1


def test_a_port_in_use_is_reported_in_one_message(start: Start, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        hosts = tmp_path / "hosts"
        hosts.write_text(f"127.0.0.1:{other.getsockname()[1]}\n127.0.0.1:{free_ports(1)[0]}\n")
        run = start("run", "--hostfile", hosts, "--process", "0", TALK, "meet")
        assert run.end() == 1
    assert run.error.startswith("timely: process 0 cannot listen at tcp://127.0.0.1:")
    assert "Address already in use; another program uses it" in run.error
    assert "Traceback" not in run.error


@pytest.mark.lengthy
def test_processes_of_different_generations_do_not_run_together(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    runs = [
        start(
            *("run", "--hostfile", hosts, "--process", str(index), TALK, "meet"),
            environ={"TIMELY_GENERATION": f"run-{index}"},
        )
        for index in range(2)
    ]
    assert [run.end() for run in runs] == [1, 1]
    assert "its generation is 'run-1.0', here it is 'run-0.0'" in runs[0].error


def test_a_missing_process_is_named_after_the_timeout(start: Start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(2)))
    environ = {"TIMELY_RENDEZVOUS_SECONDS": "0.5"}
    run = start("run", "--hostfile", hosts, "--process", "0", TALK, "meet", environ=environ)
    assert run.end() == 1
    assert "waited 0.5 s for its peers; process 1 (worker 1 at tcp://" in run.error


def test_help_teaches_with_examples() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "timely", "run", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    ).stdout
    assert "timely run -n 2 script.py" in help_text
    assert "--hostfile" in help_text


def test_keys_are_made_once(start: Start, tmp_path: Path) -> None:
    assert start("keys", tmp_path / "cluster").end() == 0
    run = start("keys", tmp_path / "cluster")
    assert run.end() == 2
    assert "exists" in run.error


def test_a_process_that_cannot_be_started_is_reported_in_a_line_and_the_others_are_ended() -> None:
    command = f"ulimit -n 22; exec {shlex.quote(sys.executable)} -m timely run -n 30 {shlex.quote(str(TALK))} hello"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert re.fullmatch(r"timely: cannot start process \d+ of 30: Too many open files; start fewer, .*\n", ended.stderr)
    assert ended.returncode == 1
