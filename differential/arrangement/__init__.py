"""Arrangements: collections indexed by key, and the core of both types; no operators on records in here."""
