"""Run one case in this process, as `harness.run_case` describes it in JSON, and write its figures."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Run the case that the first argument describes. Only the first process writes."""
    given = json.loads(sys.argv[1])
    workload = importlib.import_module(f"benchmarks.{given['workload']}")
    figures = getattr(workload, given["function"])(**given["parameters"])
    if os.environ.get("TIMELY_PROCESS", "0") == "0":
        Path(given["into"]).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
