"""What messages carry: batches of records, columns, text, and the bytes they become on the wire."""
