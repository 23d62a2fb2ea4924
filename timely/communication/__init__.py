"""How workers reach each other: messages, and the allocators that carry them.

`allocator` is the contract that workers rely on; `message` lists what they send. Two allocators fulfil the contract:
`thread` (queues within a process) and `sockets` (ZeroMQ between processes). Below `sockets`, `codec` turns messages
into frames, `link` keeps the flow control of one connection, `meeting` is the handshake, and `watch` detects lost
peers.
"""
