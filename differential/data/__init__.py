"""Updates and the codes of their columns: the border between records and kernels."""
