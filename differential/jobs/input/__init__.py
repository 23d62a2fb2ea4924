"""What jobs read: graphs, and changes to graphs, from files in several formats.

`open_graph` opens a graph once in each process, and each worker reads its `share` of it. `open_changes` opens a file of
changes, which one worker reads, and may follow while it grows. Lines that cannot be read are `Faults`.
"""
