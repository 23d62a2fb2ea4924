"""Who may still send what: timestamps, path summaries, frontiers, could-result-in, and the protocol between workers.

Everything here is pure: no clock, no socket, no thread, no worker. A tracker is told of changes and answers
with frontiers.
"""
