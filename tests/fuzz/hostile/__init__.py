"""Functions and columns that a careless or hostile program may pass to operators, compared with plain Python."""
