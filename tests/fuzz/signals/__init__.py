"""Signals at random moments to `timely run`: whatever happens, a run ends in order or reports what it has lost."""
