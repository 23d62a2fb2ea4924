"""Fuzz, guided by coverage: `python -m tests.fuzz DIRECTORY [-runs=N] [-max_total_time=SECONDS]`.

It needs `pip install atheris`. The directory keeps the inputs that reach new branches; options are libFuzzer's.
`python -m tests.fuzz --keep DIRECTORY` makes the corpus from its inputs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = """\
examples:
  python -m tests.fuzz inputs -max_total_time=3600     for an hour; a second run goes on with what is in 'inputs'
  python -m tests.fuzz inputs -runs=100000             this many inputs
  python -m tests.fuzz inputs -help=1                  all options of libFuzzer
  python -m tests.fuzz --keep inputs                   what 'tests/fuzz/test_frames.py' is to run from now on
"""

KEPT_BYTES = 300
"""The corpus keeps short inputs only."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments, by default those of the process."""
    parser = _parser()
    options, others = parser.parse_known_args(arguments)
    if not options.keep:
        fuzz(options.directory, others, parser)
    elif others or not options.directory.is_dir():
        parser.error("--keep takes one directory, which is there")
    else:
        keep(options.directory)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        usage="python -m tests.fuzz DIRECTORY [OPTIONS OF LIBFUZZER]\n       python -m tests.fuzz --keep DIRECTORY",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,  # '-h' begins options of libFuzzer
        allow_abbrev=False,
    )
    parser.add_argument(
        "directory", metavar="DIRECTORY", type=Path, help="where the inputs are; made if it is not there"
    )
    parser.add_argument("--keep", action="store_true", help="do not run; make the corpus of the short inputs there")
    parser.add_argument("--help", action="help", help="show this and exit")
    return parser


def fuzz(directory: Path, others: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Run libFuzzer with the inputs in a directory, and options of its own."""
    try:
        import atheris
    except ModuleNotFoundError:
        parser.exit(1, "the fuzzer is not installed: 'pip install atheris'\n")
    wire = ["timely.communication", "timely.data.buffers", "timely.data.container", "timely.capture.event"]
    with atheris.instrument_imports(include=wire):
        import timely.capture.codec
        import timely.capture.event
        import timely.data.container  # noqa: F401
    with atheris.instrument_imports(include=["differential.data.updates", "differential.capture"]):
        import differential.capture
        import differential.data.updates  # noqa: F401
    from tests.fuzz.frames import one_input
    from tests.fuzz.seeds import corpus, seeds

    directory.mkdir(parents=True, exist_ok=True)
    for data in (*seeds(), *corpus()):
        (directory / hashlib.sha1(data).hexdigest()).write_bytes(data)
    atheris.Setup([sys.argv[0], str(directory), *others], lambda data: one_input(data) and None)
    atheris.Fuzz()


def keep(directory: Path) -> None:
    """Write the corpus of the inputs in a directory."""
    from tests.fuzz.seeds import CORPUS

    inputs = [path.read_bytes() for path in directory.iterdir()]
    short = sorted((data for data in inputs if len(data) <= KEPT_BYTES), key=lambda data: (len(data), data))
    CORPUS.write_text("".join(f"{data.hex()}\n" for data in short))


if __name__ == "__main__":
    main()
