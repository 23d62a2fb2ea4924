"""Functions and columns that a careless or hostile program may hand to operators, compared with plain Python."""
