"""Building and running dataflows."""

# Operators make streams and streams have the operators as methods: whoever imports anything here gets the whole circle.
from timely.dataflow import stream as stream
