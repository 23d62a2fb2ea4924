"""Timely dataflow: worker processes run operators over messages tagged with logical timestamps."""
