"""Jobs: questions about a graph in a file, answered from the command line."""
