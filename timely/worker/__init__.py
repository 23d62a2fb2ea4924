"""A worker: one thread that runs its share of every dataflow, and reports what it does and waits for."""
