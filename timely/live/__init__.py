"""A running job as a page, as a table in a terminal, and as metrics; and a dataflow as a picture."""
