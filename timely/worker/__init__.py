"""A worker: one thread that runs its share of every dataflow, and what it compares with its peers."""
