"""Attackers, each as a test: what they can and cannot do according to `SECURITY.md`."""
