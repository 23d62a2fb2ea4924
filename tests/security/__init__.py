"""Attackers, each as a test: what `SECURITY.md` says that they can and cannot do."""
