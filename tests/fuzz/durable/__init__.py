"""Random programs of durable collections, in several runs that crash, and a twin in plain Python."""
