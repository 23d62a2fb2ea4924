"""Random programs of sessions that are fed by files, ordered by event time, and followed by sinks and subscribers."""
