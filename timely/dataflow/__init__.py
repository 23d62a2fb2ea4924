"""Building and running dataflows."""
