"""The experiments of the papers that this library comes from, repeated here, as tables and pictures.

    python -m benchmarks --seeds                       the figures of all experiments, in under five minutes
    python -m benchmarks --seeds --plot DIRECTORY      also a picture of each
    python -m benchmarks --seeds --only sharing        the experiments whose name contains 'sharing'
    python -m benchmarks --seeds --full                at the sizes of docs/figures.md, in under half an hour
    python -m benchmarks --seeds --from FILE           draw again what `--json FILE` recorded

The papers are Naiad (SOSP 2013), differential dataflow (CIDR 2013) and shared arrangements (VLDB 2020). Each experiment
is a module: its cases are those of the workloads of `benchmarks`, with all latencies instead of percentiles, and its
picture has the paper's figure where there is one.
"""
