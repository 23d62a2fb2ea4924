"""Run a job by its name: `python -m differential.jobs NAME ...`. Without a name, list the jobs."""

from __future__ import annotations

import difflib
import sys

from differential.jobs.catalogue import about, programs, run_program
from differential.jobs.status import status_of

USAGE = """\
usage: python -m differential.jobs NAME ...
       timely run [-n PROCESSES] [-w WORKERS] -m differential.jobs NAME ...

Answer a question about a graph or a stream, and keep the answer up to date. `NAME --help` explains a job.
"""


def main(arguments: list[str]) -> int:
    """Run the job that the first argument names; return the exit status."""
    known = programs()
    name = arguments[0] if arguments else "--help"
    if name in known:
        return run_program(known[name], name, arguments[1:])
    if name not in ("-h", "--help"):
        stem = name.lower().removesuffix("s")
        close = [each for each, path in known.items() if len(stem) > 3 and stem in about(path).lower()]
        close += [each for each in difflib.get_close_matches(name, known) if each not in close]
        hint = f"; did you mean {' or '.join(close)}?" if close else "; `python -m differential.jobs` lists all"
        print(f"{USAGE}\njobs: no job is called {name!r}{hint}", file=sys.stderr)
        return 2
    width = max(map(len, known))
    listed = [f"  {each:<{width}}  {about(path)}" for each, path in known.items()]
    return status_of("jobs", lambda: print(USAGE, *listed, sep="\n", flush=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
