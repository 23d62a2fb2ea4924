"""Files that a job writes: none is another that the job needs, and a closed stream is an error."""

from __future__ import annotations

import io
import stat
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from differential.jobs.files import (
    OutputFile,
    print_lines,
    refuse_same,
    write_changes,
    write_csv,
    write_parquet,
)
from differential.jobs.status import status_of
from timely import fail
from timely.errors import DataError
from timely.services import empty_standard_output


def test_an_output_is_no_input_and_no_other_output(tmp_path: Path) -> None:
    graph, answer, link = (str(tmp_path / name) for name in ("graph.txt", "answer.csv", "link.csv"))
    Path(graph).touch()
    Path(link).symlink_to(graph)
    refuse_same(
        {"csv": answer, "json": "-", "changes": "-", "rejects": "/dev/null", "plot": "/dev/null"}, [graph, None]
    )
    for outputs in ({"csv": graph}, {"csv": link}, {"csv": answer, "json": answer}):
        with pytest.raises(DataError, match=r"is the same file as .*, which the job needs, too"):
            refuse_same(outputs, [graph])
    with pytest.raises(DataError, match="is the same file"):
        refuse_same({"csv": str(tmp_path / "absent" / ".." / "answer.csv"), "json": answer})


@pytest.mark.parametrize("exists", [False, True])
def test_a_symbolic_link_stays_one_and_its_target_is_written(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    target, link = tmp_path / "answers" / "answer.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    if exists:
        target.write_text("an older answer")
    with OutputFile(str(link)) as file:
        file.write("complete")
        assert not exists or target.read_text() == "an older answer"
    assert link.readlink() == target
    assert target.read_text() == "complete"
    assert list(target.parent.iterdir()) == [target]


def test_a_file_that_only_its_owner_can_read_stays_so(tmp_path: Path) -> None:
    place = tmp_path / "answer.csv"
    place.write_text("an older answer")
    place.chmod(0o600)
    with OutputFile(str(place)) as file:
        file.write("secret")
        assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}
    assert (place.read_text(), stat.S_IMODE(place.stat().st_mode)) == ("secret", 0o600)


def test_a_standard_output_that_is_closed_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(DataError, match="cannot write -: standard output is closed"):
        OutputFile("-", binary=True)
    empty_standard_output()
    assert status_of("degrees", lambda: print_lines(["3 nodes"], sys.stdout)) == 1
    assert capsys.readouterr().err == "degrees: cannot write the summary: its stream is closed\n"


def test_a_summary_for_a_standard_error_that_is_closed_is_dropped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert status_of("degrees", lambda: print_lines(["3 nodes"], sys.stderr)) == 0
    assert fail("degrees: an error") == 1
    assert capsys.readouterr().out == ""


def test_a_name_that_the_locale_cannot_write_is_utf_8_in_an_answer_and_escaped_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer() -> None:
        print_lines(["to größe"], sys.stdout)
        with OutputFile("-") as file:
            write_changes(file, 1, [["größe"]], [1])

    output = io.BytesIO()
    with io.TextIOWrapper(output, encoding="ascii") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert status_of("degrees", answer) == 0
        assert output.getvalue() == b"to gr\\xf6\\xdfe\n" + "1\t+\tgröße\n".encode()


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "b\r", " a", "a "])
def test_a_name_that_a_line_of_changes_cannot_hold_is_refused(name: str, tmp_path: Path) -> None:
    with OutputFile(str(tmp_path / "changes.tsv")) as file:
        write_changes(file, 1, [["a b", "a,b"], [1, 2]], [2, -1])
        with pytest.raises(DataError, match=r"cannot write .*changes.tsv: .* has a tab, a line end, or a space"):
            write_changes(file, 2, [["a b", name], [1, 2]], [1, 1])
    assert (tmp_path / "changes.tsv").read_text() == "1\t+\ta b\t1\n1\t+\ta b\t1\n1\t-\ta,b\t2\n"


def test_tables_are_written_to_a_standard_output_that_takes_text_alone() -> None:
    pa = pytest.importorskip("pyarrow")
    table, screen = pa.table({"name": ["ä"], "n": [1]}), io.StringIO()
    with redirect_stdout(screen), OutputFile("-", binary=True) as file:
        write_csv(file, table)
        with pytest.raises(DataError, match="cannot write -: standard output takes text alone here: give the path"):
            write_parquet(file, table)
    assert screen.getvalue() == '"name","n"\n"ä",1\n'
