"""Graph algorithms as vertex programs, each a definition over `Graph`'s methods."""
