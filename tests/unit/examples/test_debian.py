"""Loading an upgrade, and the errors for invalid files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.examples_loading import example_module, write_random_upgrade, write_rows
from timely.errors import DataError

debian = example_module("debian")

INITIAL = [("b", "a"), ("c", "b")]
CHANGES = [(1, "+", "a", "c"), (1, "-", "c", "b"), (2, "+", "d", "a")]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_rows(tmp_path / "initial.tsv", INITIAL), write_rows(tmp_path / "changes.tsv", CHANGES)


def edges_at(upgrade: object, step: int) -> set[tuple[str, str]]:
    source, target = upgrade.edges_at(step)  # type: ignore[attr-defined]
    names = upgrade.names  # type: ignore[attr-defined]
    return {(names[package], names[needed]) for package, needed in zip(source.tolist(), target.tolist())}


def test_packages_are_numbered_in_the_order_of_all_names(files: tuple[Path, Path]) -> None:
    upgrade = debian.load(*files)
    assert upgrade.names == ["a", "b", "c", "d"]
    assert [upgrade.package(name) for name in upgrade.names] == [0, 1, 2, 3]


def test_steps_change_the_edges(files: tuple[Path, Path]) -> None:
    upgrade = debian.load(*files)
    assert upgrade.steps == 2
    assert edges_at(upgrade, 0) == {("b", "a"), ("c", "b")}
    assert edges_at(upgrade, 1) == {("b", "a"), ("a", "c")}
    assert edges_at(upgrade, 2) == {("b", "a"), ("a", "c"), ("d", "a")}
    assert upgrade.origin(2) == "d"


def test_workers_share_the_changes_of_each_step(tmp_path: Path) -> None:
    upgrade = debian.load(*write_random_upgrade(tmp_path, seed=1))
    for step in range(upgrade.steps + 1):
        whole = np.sort(np.column_stack(upgrade.changes(step)), axis=0)
        shares = [np.column_stack(upgrade.changes(step, worker, 3)) for worker in range(3)]
        assert np.array_equal(np.sort(np.concatenate(shares), axis=0), whole)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_file_may_lack_its_last_line_end(tmp_path: Path, files: tuple[Path, Path]) -> None:
    files[1].write_bytes(files[1].read_bytes().rstrip(b"\n"))
    assert debian.load(*files).steps == 2


def test_an_upgrade_may_have_no_steps(tmp_path: Path, files: tuple[Path, Path]) -> None:
    files[1].write_bytes(b"")
    upgrade = debian.load(*files)
    assert upgrade.steps == 0
    assert edges_at(upgrade, 0) == set(INITIAL)


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_the_whole_upgrade_matches_its_description() -> None:
    upgrade = debian.load()
    assert upgrade.steps == 19_521
    assert len(upgrade.names) == 72_957
    sizes = np.diff(upgrade.starts)
    assert (sizes[0], sizes[1:].sum()) == (279_192, 208_443)
    assert (sizes[1:].min(), np.median(sizes[1:]), sizes[1:].max()) == (1, 4, 7_839)
    for step, edges, packages in [(0, 279_192, 59_454), (upgrade.steps, 303_203, 64_403)]:
        source, target = upgrade.edges_at(step)
        assert len(source) == edges
        assert len(np.union1d(source, target)) == packages


# Bad input


@pytest.mark.parametrize(
    ("which", "row", "message"),
    [
        (0, ("a",), r"initial\.tsv, line 3: expected 2 fields \(package, needed package\), found 1"),
        (0, ("a", "b", "c"), r"initial\.tsv, line 3: expected 2 fields .*, found 3"),
        (0, (), r"initial\.tsv, line 3: expected 2 fields .*, found 1"),
        (0, ("a", ""), r"initial\.tsv, line 3: a package without a name"),
        (0, ("b", "a"), r"initial\.tsv, line 3: inserts an edge that is there already: b -> a"),
        (1, (2, "+", "a"), r"changes\.tsv, line 4: expected 4 fields \(.*\), found 3"),
        (1, (2, "*", "a", "b"), r"changes\.tsv, line 4: expected \+ or - in the second field, found '\*'"),
        (1, ("", "+", "a", "b"), r"changes\.tsv, line 4: expected step 2 or 3, found ''"),
        (1, (4, "+", "a", "b"), r"changes\.tsv, line 4: expected step 2 or 3, found '4'"),
        (1, (1, "+", "a", "b"), r"changes\.tsv, line 4: expected step 2 or 3, found '1'"),
        (1, ("two", "+", "a", "b"), r"changes\.tsv, line 4: expected step 2 or 3, found 'two'"),
        (1, (3, "-", "c", "b"), r"changes\.tsv, line 4: removes an edge that is not there: c -> b"),
        (1, (3, "-", "x", "y"), r"changes\.tsv, line 4: removes an edge that is not there: x -> y"),
        (1, (3, "+", "d", "a"), r"changes\.tsv, line 4: inserts an edge that is there already: d -> a"),
    ],
)
def test_an_invalid_line_is_named(files: tuple[Path, Path], which: int, row: tuple[object, ...], message: str) -> None:
    rows: list[tuple[object, ...]] = [*(INITIAL, CHANGES)[which], row]
    write_rows(files[which], rows)
    with pytest.raises(DataError, match=message):
        debian.load(*files)


def test_the_first_of_several_impossible_lines_is_named(files: tuple[Path, Path]) -> None:
    write_rows(files[1], [(1, "-", "z", "z"), (1, "-", "a", "a")])
    with pytest.raises(DataError, match="line 1: removes an edge that is not there: z -> z"):
        debian.load(*files)


def test_steps_begin_with_1(files: tuple[Path, Path]) -> None:
    write_rows(files[1], [(0, "+", "a", "c")])
    with pytest.raises(DataError, match="line 1: expected step 1, found '0'"):
        debian.load(*files)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    initial, changes = write_random_upgrade(tmp_path, seed=2)
    changes.write_bytes(changes.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"steps\.tsv\.gz is a damaged gzip file: it ends in the middle"):
        debian.load(initial, changes)


@pytest.mark.parametrize("damage", [lambda data: b"not gzip", lambda data: data[:40] + b"\xff" * 8 + data[48:]])
def test_a_damaged_file_is_named(tmp_path: Path, damage: object) -> None:
    initial, changes = write_random_upgrade(tmp_path, seed=2)
    initial.write_bytes(damage(initial.read_bytes()))  # type: ignore[operator]
    with pytest.raises(DataError, match=r"initial\.tsv\.gz is a damaged gzip file"):
        debian.load(initial, changes)


def test_a_missing_file_is_named(files: tuple[Path, Path]) -> None:
    with pytest.raises(DataError, match="cannot read nowhere: No such file or directory"):
        debian.load(Path("nowhere"), files[1])


def test_text_that_is_not_utf_8_is_named(tmp_path: Path, files: tuple[Path, Path]) -> None:
    initial = tmp_path / "latin.tsv.gz"
    initial.write_bytes(gzip.compress(b"a\tb\n\xe4\tb\n"))
    with pytest.raises(DataError, match=r"latin\.tsv\.gz, line 2: not UTF-8"):
        debian.load(initial, files[1])


def test_close_names_are_suggested_for_an_unknown_package() -> None:
    upgrade = debian.Upgrade(["libssl3", "perl", "zsh"], *[np.zeros(0, np.int64)] * 4)
    with pytest.raises(DataError, match=r"no package is called 'libssl4'; did you mean libssl3\?"):
        upgrade.package("libssl4")
    with pytest.raises(DataError, match=r"no package is called 'qqqq'$"):
        upgrade.package("qqqq")
