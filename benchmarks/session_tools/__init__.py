"""The tools that `benchmarks.session_peers` measures, each in a module: a session, DuckDB, Polars and Pathway."""
