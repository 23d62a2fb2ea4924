"""Differential dataflow: collections of `(data, time, diff)` updates, answering a change with a change."""
