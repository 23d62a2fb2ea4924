"""Which process compiles a kernel, and what it reports."""

from __future__ import annotations

import errno
import subprocess
import sys
import textwrap
import time as clock
from pathlib import Path

import pytest

from differential.kernels import turn as turns
from differential.kernels.store import report
from differential.kernels.turn import Turn, notice


def test_slow_work_is_reported_and_quick_work_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE", 60.0)
    with notice("quick"):
        pass
    printed = ""
    monkeypatch.setattr(turns, "_PATIENCE", 0.02)
    with notice("working"):
        end = clock.monotonic() + 30
        while not printed.endswith("\n") and clock.monotonic() < end:
            clock.sleep(0.01)
            printed += capsys.readouterr().err
    assert printed == "working\n"


def test_one_process_at_a_time_compiles_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE", 0.05)
    printed: list[str] = []
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
            import fcntl, sys
            file = open({str(tmp_path / "compiling.lock")!r}, "a")
            fcntl.lockf(file, fcntl.LOCK_EX, 1, {Turn(tmp_path, "total").place})
            print("held", flush=True)
            sys.stdin.read()
        """),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def note(text: str) -> None:
            printed.append(text)
            holder.stdin.close()  # type: ignore[union-attr]

        monkeypatch.setattr(turns, "print_line", note)
        with Turn(tmp_path, "another") as turn:
            assert turn.is_ours()
        with Turn(tmp_path, "total") as turn:
            assert not turn.is_ours()
            assert not printed
            turn.wait()
            assert len(printed) == 1
            assert holder.wait(30) == 0
    assert "waiting for another process" in printed[0]


def test_without_file_locks_no_process_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with Turn(tmp_path, "total") as turn:
        assert turn.is_ours()


def test_nothing_is_printed_on_standard_output_where_there_is_no_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", None)  # as where it is closed when Python starts
    with notice("working"):
        clock.sleep(0.2)
    report("this kernel cannot be kept")
    assert capsys.readouterr().out == ""
