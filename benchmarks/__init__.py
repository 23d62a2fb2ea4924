"""Benchmarks: one workload in each file, run in fresh processes, and checked before a time is reported.

    python -m benchmarks                 a quick subset, in under two minutes
    python -m benchmarks --full          all cases at all sizes
    python -m benchmarks --only wcc      the cases whose name contains 'wcc'
    python -m benchmarks --peers         also other libraries: SciPy for every graph, Pathway, Bytewax
    python -m benchmarks --json FILE     also write every run, with commit, machine and versions
    python -m benchmarks --seeds         the experiments of the papers: see `benchmarks.seeds`
    python -m benchmarks --help          the list of workloads, and how to read the table

A workload module has `CASES`, a list of `harness.Case`, and `measure(**parameters)`, which runs one case in this
process and returns figures by name. The first line of its docstring describes it in the help text. `harness` runs each
case three times, in separate processes each time, so peak memory and warm-up are those of the case alone.
"""
