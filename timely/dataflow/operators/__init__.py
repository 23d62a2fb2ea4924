"""Operators: one a file, each written in the highest construct that can express it."""
