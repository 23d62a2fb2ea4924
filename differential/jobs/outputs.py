"""What a job about a stream leaves: a summary, figures, the last answer, its changes, and a picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from differential.extra import needed_for
from differential.jobs.files import (
    STANDARD,
    OutputFile,
    print_lines,
    refuse_same,
    write_changes,
    write_csv,
    write_json,
    write_parquet,
    write_records,
)
from differential.jobs.picture import PANEL, Panel, save
from timely import Worker
from timely.services import Display

FILES = ("changes_to", "json", "csv", "parquet", "rejects", "plot")
BINARY = ("parquet", "plot")

CHECKED = "checked: the answer from scratch is the same"


@dataclass
class Result:
    """What there is at the end: the lines of the summary, the figures, the last answer as records, and panels."""

    lines: Sequence[str]
    figures: Mapping[str, Any]
    header: Sequence[str] = ()
    records: Sequence[Sequence[Any]] = ()
    title: str = ""
    panels: Sequence[Panel] = field(default_factory=list)
    columns: int = 0
    """How many panels of the picture stand side by side; 0 means all."""
    shape: tuple[float, float] = PANEL
    """Width and height of a panel, in inches."""
    texts: Sequence[str] = ()
    """The columns that hold text, which no record shows if there is none."""
    table: Callable[[], Any] | None = None
    """Returns the last answer as an Arrow table, if that takes the place of records."""

    def as_table(self) -> Any:
        """Return the last answer as an Arrow table."""
        if self.table is not None:
            return self.table()
        import pyarrow as pa

        columns = zip(*self.records) if self.records else ((),) * len(self.header)
        kinds = [pa.string() if name in self.texts else None if self.records else pa.int64() for name in self.header]
        return pa.table(dict(zip(self.header, map(pa.array, columns, kinds))))


def require(outputs: Container[str]) -> None:
    """Raise ConfigError, before the work and not after it, if a library is missing that an output needs.

    >>> require(["csv", "json"])
    """
    if "plot" in outputs:
        with needed_for("--plot"):
            import matplotlib  # noqa: F401
    if "parquet" in outputs:
        with needed_for("--parquet"):
            import pyarrow  # noqa: F401


@dataclass
class Outputs:
    """The outputs that the options ask for. Only worker 0 has any."""

    job: str
    options: argparse.Namespace
    is_quiet: bool
    files: dict[str, OutputFile] = field(default_factory=dict)
    """The open files, by their options."""

    @property
    def has_changes(self) -> bool:
        """Whether someone reads the changes of the answer."""
        return "changes_to" in self.files

    def print(self, *lines: str) -> None:
        """Print lines, unless the job is to be quiet: on standard output, or on standard error if that is taken."""
        if lines and not self.is_quiet:
            is_taken = any(file.name == STANDARD for file in self.files.values())
            print_lines(lines, sys.stderr if is_taken else sys.stdout)

    def change(self, epoch: Any, records: Sequence[Sequence[Any]], diffs: Sequence[int]) -> None:
        """Write the changes of an epoch, if someone reads them."""
        if records and self.has_changes:
            write_changes(self.files["changes_to"], epoch, list(zip(*records)), diffs)

    def finish(self, result: Result) -> None:
        """Print and write everything else."""
        checked = [CHECKED] if getattr(self.options, "check", False) else []
        lines = [*result.lines, *checked]
        self.print(*lines)
        if "json" in self.files:
            write_json(self.files["json"], {"job": self.job, "answer": lines, **result.figures})
        if "csv" in self.files and result.table is not None:
            write_csv(self.files["csv"], result.as_table())
        elif "csv" in self.files:
            write_records(self.files["csv"], result.header, result.records)
        if "parquet" in self.files:
            write_parquet(self.files["parquet"], result.as_table())
        if "plot" in self.files:
            save(self.files["plot"], result.title, result.panels, result.columns, result.shape)


@contextmanager
def opened(
    job: str,
    options: argparse.Namespace,
    is_first: bool,
    inputs: Iterable[str | None] = (),
    has_tables: bool = False,
) -> Iterator[Outputs]:
    """Yield the outputs that the options ask for; files take their places when the block ends without an exception.

    None may be one of the `inputs`. If the job `has_tables`, Arrow writes its CSV, in binary.
    """
    given = {option: getattr(options, option, None) for option in FILES} if is_first else {}
    names = {option: name for option, name in given.items() if name is not None}
    require(names)
    refuse_same(names, inputs)
    binary = (*BINARY, "csv") if has_tables else BINARY
    outputs = Outputs(job, options, options.quiet or not is_first)
    with ExitStack() as stack:
        for option, name in names.items():
            is_live = option == "changes_to" and getattr(options, "follow", False)
            file = OutputFile(name, is_live=is_live, binary=option in binary)
            outputs.files[option] = stack.enter_context(file)
        yield outputs


@contextmanager
def reporting(
    job: str,
    worker: Worker,
    options: argparse.Namespace,
    inputs: Iterable[str | None] = (),
    has_tables: bool = False,
) -> Iterator[tuple[Outputs, Display]]:
    """Yield the outputs of a job and the display of its progress, of which only worker 0 shows anything."""
    is_first = worker.index == 0
    with (
        opened(job, options, is_first, inputs, has_tables) as outputs,
        Display(is_first and not options.quiet) as display,
    ):
        yield outputs, display
