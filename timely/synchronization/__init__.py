"""Workers that wait for each other, and commands that all of them receive in the same order."""
