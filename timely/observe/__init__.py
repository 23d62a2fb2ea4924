"""What happens on a worker, for listeners, and what it does now: events, log, accounts, activity, notices."""
