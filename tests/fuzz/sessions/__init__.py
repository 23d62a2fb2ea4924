"""Random programs of sessions, compared with a database that recomputes everything in plain Python."""
