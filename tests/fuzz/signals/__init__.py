"""Signals at random moments to `timely run`: whatever comes, a run ends in order or says what it lost."""
