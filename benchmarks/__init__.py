"""Benchmarks: one workload a file, each measured in fresh processes and checked before a time is reported.

    python -m benchmarks                 a quick subset, under two minutes
    python -m benchmarks --full          all sizes
    python -m benchmarks --only wcc      the cases whose name contains 'wcc'
    python -m benchmarks --peers         other libraries beside: SciPy for every graph, Pathway, Bytewax
    python -m benchmarks --json FILE     every run, with commit, machine and versions

A workload module has `CASES`, a list of `harness.Case`, and `measure(**parameters)`, which runs one of them in this
process and returns figures by name. `harness` runs each case three times, every time in processes of its own, so that
peak memory and warm-up are those of the case alone.
"""
