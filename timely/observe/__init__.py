"""What happens on a worker, for whoever subscribes: events, the log, accounts, status and the stall notice."""
