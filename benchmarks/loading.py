"""Edges read from files: text, compressed text, Parquet, npy, and text with names, in one process.

The file has the random graph, and is in the memory of the system when it is read. It is read twice, and the second time
is measured, from opening the file to the last batch of columns. Names are numbered in their order, which needs a pass
over all of them before the first batch. Nothing is inserted into a dataflow.
"""

from __future__ import annotations

import tempfile
import time as clock
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graphs import Edges, RandomGraph
from benchmarks.harness import Case, Figures, check

RATE, BYTES, CPU = "M rows/s", "MB of the file/s", "CPU s"
TARGETS = {"text": 5.0, "names": 5.0}
"""The least rate of a format, if it has one."""
FORMATS = ("text", "gz", "zst", "parquet", "npy", "names")


def _case(name: str, format: str, nodes: int, edges: int, quick: bool) -> Case:
    limits = {RATE: TARGETS[format]} if format in TARGETS and not quick else {}
    parameters = {"format": format, "nodes": nodes, "edges": edges}
    return Case(f"loading {format} {name}", "loading", parameters, quick=quick, limits=limits)


CASES = [
    *(_case("100k/1M", format, 100_000, 1_000_000, True) for format in FORMATS),
    *(_case("1M/10M", format, 1_000_000, 10_000_000, False) for format in FORMATS),
]


def measure(format: str, nodes: int, edges: int) -> Figures:
    """Return the figures of reading the random graph from a file."""
    from differential.jobs.input.faults import Faults
    from differential.jobs.input.graph import open_graph
    from differential.jobs.input.layout import InputLayout

    source, target = RandomGraph(nodes, edges).initial
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph"
        write(path, format, (source, target))
        for _ in range(2):
            begun, used = clock.perf_counter(), clock.process_time()
            graph = open_graph(str(path), InputLayout(), Faults())
            batches = list(graph.share(0, 1))
            seconds, used = clock.perf_counter() - begun, clock.process_time() - used
        size = path.stat().st_size
    found = [np.concatenate(column) for column in zip(*(batch[:2] for batch in batches))]
    if graph.names is not None:
        numbers = np.array([int(name[1:]) for name in graph.names.text(range(len(graph.names)))])
        found = [numbers[column] for column in found]
    right = all(bool(np.array_equal(*columns)) for columns in zip(found, (source, target)))
    check(right, "the file has other edges than were written")
    return {RATE: 1e-6 * edges / seconds, BYTES: 1e-6 * size / seconds, CPU: used}


def write(path: Path, format: str, edges: Edges) -> None:
    """Write edges to a file."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    columns: Any = edges
    if format == "npy":
        with path.open("wb") as file:
            np.save(file, np.stack(edges, axis=1))
        return
    if format == "names":
        columns = [pa.compute.binary_join_element_wise("n", pa.array(column).cast("string"), "") for column in edges]
    table = pa.table(dict(zip(("source", "target"), map(pa.array, columns))))
    if format == "parquet":
        pa.parquet.write_table(table, path)
        return
    codec = {"gz": "gzip", "zst": "zstd"}.get(format)
    options = pa.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with pa.output_stream(str(path), compression=codec) as stream:
        pa.csv.write_csv(table, stream, options)
