"""How workers reach each other: messages, and the allocators that carry them.

`allocator` is the contract that workers rely on; `message` lists what they send. Three allocators fulfil the contract:
`thread` (queues within a process), `sockets` (ZeroMQ between processes) and `simulated` (one thread and a seeded random
choice, for tests). Below `sockets`, `codec` turns messages into frames, `link` keeps the flow control of one
connection, `meeting` is the handshake, and `watch` detects lost peers.
"""
