"""The contents of messages: batches of records, columns, text, and their encoding as bytes."""
