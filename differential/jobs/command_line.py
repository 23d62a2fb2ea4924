"""The command line that all graph jobs share."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, get_args

from differential.jobs.catalogue import directory
from differential.jobs.job import Job

Number = TypeVar("Number", int, float)

GRAPH = """\
where the graph comes from: a file of edges as text (separated by tabs, commas or blanks; comments; with or without a
header; nodes are integers or names), also compressed (.gz, .zst, .bz2); Parquet, Arrow, .npy or Matrix Market; '-'
for standard input; random:NODES,EDGES[,SEED]; or rmat:SCALE,FACTOR[,SEED]"""

CHANGES = """\
a file of changes: lines of '+' or '-', a source and a target, after an epoch if lines with the same epoch happen
together; otherwise each line is a change of its own; or replace:COUNT[,SEED] edges of a generated graph"""

CHECK = "compute the last answer from scratch with another library, and compare the two"

EPILOG = """\
Answers are the same for any number of processes and workers. Latency is the time from inserting a batch of changes
until the answer is final, divided by the number of changes in the batch.

examples:
  {program} random:10000,50000 replace:1000
  {program} graph.tsv.gz changes.tsv --check --plot answer.svg
  {program} graph.parquet --parquet answer.parquet --json report.json
  {program} graph.csv - --follow --changes - < changes
  timely run -n 2 {script} graph.tsv      (two processes)
"""


def parse(job: Job, arguments: Sequence[str] | None, program: str) -> argparse.Namespace:
    """Return the options of a job's command line. Exits with status 2 if they are wrong."""
    parser = parser_of(job.about, EPILOG, program)
    parser.add_argument("graph", metavar="GRAPH", help=GRAPH)
    parser.add_argument("changes", metavar="CHANGES", nargs="?", help=CHANGES)
    own = parser.add_argument_group("the question")
    for nodes in job.nodes:
        own.add_argument(f"--{nodes.name}", action="append", metavar="NODE", dest=nodes.name, help=nodes.help)
    if job.add_options is not None:
        job.add_options(own.add_argument)
    _add_input(parser)
    add_output(parser)
    if job.check is None:
        parser.set_defaults(check=False)
    else:
        own.add_argument("--check", action="store_true", help=CHECK)
    options = options_from(parser, arguments)
    if (options.on_error == "report") != (options.rejects is not None):
        parser.error("--on-error report and --rejects FILE belong together: give both or neither")
    if options.graph == "-" == options.changes:
        parser.error("GRAPH and CHANGES cannot both be standard input")
    if options.follow and options.changes is None:
        parser.error("--follow is about CHANGES, which is missing")
    try:
        if job.settle is not None:
            job.settle(options)
    except ValueError as error:
        parser.error(str(error))
    # After `settle`: whether lengths are used may depend on what that has decided.
    if options.weight is not None and not job.is_weighted(options):
        remedy = "add --weighted" if hasattr(options, "weighted") else "leave it out"
        parser.error(f"--weight names lengths, which this question does not use: {remedy}")
    return options


def _add_input(parser: argparse.ArgumentParser) -> None:
    """Add the options about how input is read."""
    from differential.jobs.input.faults import Policy  # only jobs about graphs need the libraries that read files

    group = parser.add_argument_group("input")
    add = group.add_argument
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--names",
        dest="names",
        action="store_true",
        default=None,
        help="nodes are names, even if they look like numbers",
    )
    kind.add_argument("--integers", dest="names", action="store_false", help="nodes are integers")
    head = group.add_mutually_exclusive_group()
    head.add_argument("--header", dest="header", action="store_true", default=None, help="the first line is a header")
    head.add_argument("--no-header", dest="header", action="store_false", help="the first line is an edge")
    add("--separator", metavar="TEXT", help="what separates the fields of a line: tab, comma, space or one character")
    add("--weight", metavar="COLUMN", help="the column of weights: a name of the header, or a number from 1")
    add(
        "--time",
        metavar="COLUMN",
        help="the column of times, integers: the edges arrive in their order, those of the same time in one epoch",
    )
    add("--follow", action="store_true", help="wait for more changes at the end of CHANGES, until Ctrl-C")
    add(
        "--batch",
        type=at_least(1),
        default=1,
        metavar="N",
        help="insert N changes at once, in an epoch each (default 1)",
    )
    add(
        "--on-error",
        choices=get_args(Policy),
        default="stop",
        help="a line that cannot be read, or removes an absent edge, ends the job (stop, the default), is counted and "
        "left out (skip), or is also written to the file of --rejects (report)",
    )
    add("--rejects", metavar="FILE", help="write such lines to FILE, with their numbers and what is wrong")


def parser_of(about: str, epilog: str, program: str | None = None) -> argparse.ArgumentParser:
    """Return a parser with this description, and an epilog in which `{program}` and `{script}` have their names.

    `{program}` stands for the program's command as it was given, and `{script}` for what follows `timely run`.
    """
    program = program or program_of(sys.argv[0])
    return argparse.ArgumentParser(
        prog=program,
        description=about,
        epilog=epilog.format(program=program, script=program.removeprefix("python ")),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def program_of(path: str) -> str:
    """Return the command that runs the program at a path: by its name if it was run so, or is in an installed package.

    >>> program_of("examples/components.py"), program_of(str(directory() / "components.py"))
    ('python examples/components.py', 'python -m differential.jobs components')
    """
    where = Path(path)
    return f"python -m differential.jobs {where.stem}" if where.parent == directory() else f"python {path}"


OUTPUTS: dict[str, dict[str, Any]] = {
    "--json": {"metavar": "FILE", "help": "write the figures of the run to FILE"},
    "--csv": {"metavar": "FILE", "help": "write the last answer to FILE"},
    "--parquet": {"metavar": "FILE", "help": "write the last answer to FILE"},
    "--changes": {
        "metavar": "FILE",
        "dest": "changes_to",
        "help": "write how the answer changes, as lines of an epoch, '+' or '-', and a record, which another job reads",
    },
    "--plot": {
        "metavar": "FILE",
        "help": "draw the answer, and latencies if there are changes (.svg, .png, .pdf)",
    },
    "--quiet": {"action": "store_true", "help": "print no summary and show no progress"},
}
"""The options about what is written."""

NOTHING: Mapping[str, str] = MappingProxyType({})


def add_output(parser: argparse.ArgumentParser, without: Mapping[str, str] = NOTHING, **helps: str) -> None:
    """Add the options about what is written; `helps` are texts that replace those here.

    `without` maps an option that the job does not have to the reason, which `--help` gives, and the error of whoever
    gives the option.
    """
    add: Callable[..., Any] = parser.add_argument_group("output ('-' is standard output)").add_argument
    for name, given in OUTPUTS.items():
        if name in without:
            kept = {key: given[key] for key in ("dest", "metavar") if key in given}
            add(name, action=_Missing, help=f"not in this job: {without[name]}", **kept)
            continue
        text = helps.get(name.removeprefix("--"), given["help"])
        add(name, **({"type": _picture} if name == "--plot" else {}), **given | {"help": text})


class _Missing(argparse.Action):
    """An option that a job does not have, for a reason."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, help: str, metavar: str | None = None, default: Any = None
    ) -> None:
        values = "?" if metavar else 0
        super().__init__(option_strings, dest, nargs=values, default=default, metavar=metavar, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(f"{self.option_strings[0]} is {self.help}")


def options_from(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options that a job receives. Exits with status 2 if more than one output is standard output."""
    options = parser.parse_args(arguments)
    if [getattr(options, name, None) for name in ("changes_to", "json", "csv", "parquet", "rejects")].count("-") > 1:
        parser.error("only one output can be standard output")
    return options


def at_least(least: Number) -> Callable[[str], Number]:
    """Return the type of an argument that is a finite number of at least `least`, and an integer if `least` is one."""
    kind = type(least)
    what = "whole number" if kind is int else "number"

    def number(text: str) -> Number:
        try:
            given = kind(text)
        except ValueError:
            given = kind(least - 1)
        # Not `isfinite`, which cannot take every integer. NaN is neither less nor more.
        if not least <= given < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what} of at least {least}")
        return given

    return number


def _picture(text: str) -> str:
    if Path(text).suffix in (".svg", ".png", ".pdf"):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} does not end in .svg, .png or .pdf")
