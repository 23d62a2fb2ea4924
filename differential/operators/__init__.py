"""The operators on collections and arrangements, one a file."""
