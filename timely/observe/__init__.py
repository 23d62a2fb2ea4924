"""What happens on a worker, for whoever listens, and what it does now: events, log, accounts, activity, notices."""
