"""Traces: the updates of a collection as immutable batches, indexed, merged and compacted; no dataflow in here."""
