"""A job's status and its one line depend on how it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from differential.extra import needed_for
from differential.jobs.status import CheckError, status_of
from timely.errors import DataError, OperatorError


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_a_failure_is_printed_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("job", raising(DataError("file, line 3: no number"))) == 1
    assert status_of("job", raising(CheckError("the answer is wrong"))) == 1
    assert capsys.readouterr().err == "job: file, line 3: no number\njob: the answer is wrong\n"


def test_a_missing_library_is_named_with_the_command_that_installs_it(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> None:
        with needed_for("--plot"):
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    assert status_of("job", body) == 1
    assert capsys.readouterr().err == "job: --plot needs matplotlib: pip install 'timely-dataflow[jobs]'\n"


def test_an_interrupted_job_has_a_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("job", raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == ""


def failing(cause: Exception) -> Callable[[], None]:
    def body() -> None:
        raise OperatorError("operator 'map' failed") from cause

    return body


def test_data_that_an_operator_refuses_is_printed_without_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("job", failing(DataError("a distance is too large for 64 bits"))) == 1
    assert capsys.readouterr().err == "job: a distance is too large for 64 bits\n"


def test_an_error_of_the_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        status_of("job", raising(ZeroDivisionError()))
    with pytest.raises(OperatorError, match="'map' failed"):
        status_of("job", failing(ZeroDivisionError()))
