"""How runs end on request: in order if programs clean up, and within seconds if they cannot."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time as clock
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.launcher.conftest import Start
from tests.integration.launcher.launching import PROMPT, ROOT, SCRIPTS, is_alive, signals_enabled
from timely.run.launcher import ANSWER_SECONDS, CLEANUP_SECONDS, TERMINATE_SECONDS

TALK = SCRIPTS / "talk.py"
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

STUCK = """
import itertools, os
print("pid", os.getpid(), flush=True)
sum(itertools.repeat(1, 10**11))  # hours in compiled code, which lets no other thread run and no handler either
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("signum", ENDING)
def test_processes_inside_compiled_code_get_no_time_to_clean_up(
    start: Start, tmp_path: Path, signum: signal.Signals
) -> None:
    script = tmp_path / "stuck.py"
    script.write_text(STUCK)
    (temporary := tmp_path / "temporary").mkdir()
    run = start("run", "-n", "2", script, environ={"TMPDIR": str(temporary)})
    run.until_started(2)
    begun = clock.monotonic()
    os.killpg(run.process.pid, signum)
    assert run.end() == 128 + signum
    assert ANSWER_SECONDS <= clock.monotonic() - begun < CLEANUP_SECONDS
    assert run.error == ""
    assert list(temporary.iterdir()) == []


CLEANS = """
import os, time
try:
    print("pid", os.getpid(), flush=True)
    time.sleep(60)
finally:
    time.sleep(SECONDS)
    print("cleaned", flush=True)
"""
LONGER = ANSWER_SECONDS + TERMINATE_SECONDS + 1


@pytest.mark.lengthy
@pytest.mark.parametrize("signum", ENDING)
def test_programs_get_time_to_clean_up_after_any_signal_to_all_processes(
    start: Start, tmp_path: Path, signum: signal.Signals
) -> None:
    script = tmp_path / "program.py"
    script.write_text(CLEANS.replace("SECONDS", str(LONGER)))
    run = start("run", "-n", "2", script)
    run.until_started(2)
    os.killpg(run.process.pid, signum)
    assert run.end() == 128 + signum
    assert run.output.count("cleaned") == 2
    assert run.error == ""


@pytest.mark.lengthy
@pytest.mark.parametrize("signum", ENDING)
def test_a_stopped_process_is_continued_and_cleans_up_when_the_run_is_asked_to_end(
    start: Start, tmp_path: Path, signum: signal.Signals
) -> None:
    script = tmp_path / "program.py"
    script.write_text(CLEANS.replace("SECONDS", "0"))
    run = start("run", "-n", "2", "--peer-timeout", "600", script)
    pids = run.until_started(2)
    os.kill(pids[0], signal.SIGSTOP)
    run.send(signum)
    assert run.end() == 128 + signum
    assert run.output.count("cleaned") == 2


HANDLES = """
import os, signal, sys, time

def end(signum, frame):
    time.sleep(SECONDS)
    os.write(1, b"ended\\n")  # a handler cannot print: the signal may arrive inside another `print`
    os._exit(0)

signal.signal(signal.SIGINT, end)
print("pid", os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.mark.lengthy
def test_a_program_that_handles_the_signal_itself_gets_time_to_clean_up(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HANDLES.replace("SECONDS", str(LONGER)))
    run = start("run", "-n", "2", script)
    run.until_started(2)
    run.send(signal.SIGINT)
    assert run.end() == 130
    assert run.output.count("ended") == 2
    assert run.error == ""


@pytest.mark.lengthy
def test_a_stopped_process_does_not_outlive_a_launcher_that_is_killed(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(CLEANS.replace("SECONDS", "0"))
    run = start("run", "-n", "2", script, environ={"TMPDIR": str(tmp_path)})
    pids = run.until_started(2)
    os.kill(pids[1], signal.SIGSTOP)
    run.send(signal.SIGKILL)
    run.process.wait(40)
    run.until_gone()
    assert list(tmp_path.iterdir()) == [script]


@pytest.mark.lengthy
def test_the_next_run_removes_the_leftovers_of_a_killed_run_and_no_files_in_use(start: Start, tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path)}
    running = start("run", "-n", "2", TALK, "wait", "-1", environ=environ)
    killed = start("run", "-n", "2", TALK, "wait", "-1", environ=environ)
    for run in (running, killed):
        run.until_started(2)
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.wait(40)
    killed.until_gone()
    assert len(list(tmp_path.iterdir())) == 2
    assert start("run", "-n", "2", TALK, "meet", environ=environ).end() == 0
    (left,) = tmp_path.iterdir()
    running.send(signal.SIGTERM)
    assert running.end() == 143
    assert running.error == ""
    assert not left.exists()


@pytest.mark.lengthy
def test_processes_that_a_key_at_a_terminal_has_reached_are_not_interrupted_again_while_they_clean_up(
    start: Start, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(CLEANS.replace("    time.sleep(SECONDS)", "    print('cleans', flush=True)\n    time.sleep(3)"))
    run = start("run", "-n", "2", script)
    for pid in run.until_started(2):
        os.kill(pid, signal.SIGINT)
    run._wait_for(lambda: run.output.count("cleans") == 2, 40, "not all processes clean up")
    clock.sleep(1.2)  # longer than two interrupts are taken for one, as on a busy machine
    run.send(signal.SIGINT)
    assert run.end() == 130
    assert run.output.count("cleaned") == 2
    assert run.error == ""


@pytest.mark.lengthy
def test_a_process_that_is_stopped_while_it_cleans_up_is_continued(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(CLEANS.replace("    time.sleep(SECONDS)", "    print('cleans', flush=True)\n    time.sleep(1)"))
    run = start("run", "-n", "2", script)
    pids = run.until_started(2)
    os.killpg(run.process.pid, signal.SIGTERM)
    run._wait_for(lambda: run.output.count("cleans") == 2, 40, "not all processes clean up")
    begun = clock.monotonic()
    os.kill(pids[1], signal.SIGSTOP)
    assert run.end() == 143
    assert run.output.count("cleaned") == 2
    assert clock.monotonic() - begun < CLEANUP_SECONDS


# SIGUSR1


@pytest.mark.lengthy
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_request_for_a_report_while_the_command_starts_does_not_end_it(
    start: Start, tmp_path: Path, processes: str
) -> None:
    script = tmp_path / "program.py"
    script.write_text("import sys\nsys.stdin.readline()\n")
    # Signals of the interpreter's first moments cannot be held back; from the command's first line on they are.
    code = "import os, signal, sys\nfrom timely.run import command\n"
    code += "kill = lambda: os.kill(os.getpid(), signal.SIGUSR1)\n"
    code += "mask = signal.pthread_sigmask\n"
    code += "signal.pthread_sigmask = lambda *each: (mask(*each), kill(), setattr(signal, 'pthread_sigmask', mask))\n"
    code += "sys.exit(command.main())\n"
    run = start("run", "-n", processes, script, command=["-c", code])
    if processes == "1":  # with several processes, none could answer yet
        run._wait_for(lambda: "no worker runs in this process" in run.error, 40, "no report was made")
    assert run.process.stdin is not None
    run.process.stdin.write("\n")
    run.process.stdin.flush()
    assert run.end() == 0, run.error


@pytest.mark.lengthy
@pytest.mark.parametrize("processes", ["1", "2"])
def test_requests_for_reports_never_end_a_run(start: Start, tmp_path: Path, processes: str) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os\nprint('pid', os.getpid(), flush=True)\n")
    run = start("run", "-n", processes, script, command=["-c", BEGUN])
    run._wait_for(lambda: "begun" in run.output, 40, "the command has not begun")
    while run.process.poll() is None:
        run.send(signal.SIGUSR1)
        clock.sleep(0.001)
    assert run.end() == 0, run.error


BEGUN = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("begun", flush=True)
from timely.run.command import main
sys.exit(main())
"""


@pytest.mark.lengthy
def test_a_request_for_a_report_at_the_very_end_of_a_process_does_nothing() -> None:
    code = "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGUSR1))\n"
    code += "class Late:\n    def __del__(self):\n        kill(pid, number)\n"
    code += "kill, pid, number = os.kill, os.getpid(), signal.SIGUSR1\n"
    code += "from timely.run.signals import report_on_signal\nreport_on_signal()\nimport sys\nsys.late = Late()\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.lengthy
def test_help_explains_how_a_run_ends() -> None:
    command = [sys.executable, "-m", "timely", "run", "--help"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=50).stdout
    words = re.sub(r"\s+", " ", text)
    assert f"has not begun to end after {ANSWER_SECONDS:g} seconds" in words
    assert f"{CLEANUP_SECONDS:g} seconds to clean up" in words
    assert "nohup" in words
    assert "sys.exit(0)" in words


CHATTY = """
import os
print("pid", os.getpid(), flush=True)
while True:
    print("x" * 1000)
"""


@pytest.mark.parametrize("options", [[], ["--raw"]])
def test_a_run_whose_output_nobody_reads_ends_when_it_is_asked_to(tmp_path: Path, options: list[str]) -> None:
    script = tmp_path / "chatty.py"
    script.write_text(CHATTY)
    unread, output = os.pipe()
    command = [sys.executable, "-m", "timely", "run", "-n", "2", *options, str(script)]
    begun = clock.monotonic()
    with signals_enabled():
        run = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, start_new_session=True)
    try:
        while select.select([], [output], [], 0)[1]:
            assert clock.monotonic() < begun + 40, "the pipe has not filled up"
            clock.sleep(0.01)
        promptly = max(PROMPT, 4 * (clock.monotonic() - begun))
        run.terminate()
        assert run.wait(promptly) == 128 + signal.SIGTERM
        assert not any(is_alive(int(pid)) for pid in re.findall(rb"pid (\d+)", os.read(unread, 1 << 20)))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        _, error = run.communicate()
        os.close(unread)
        os.close(output)
    assert error == b""
