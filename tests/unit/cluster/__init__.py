"""Starting programs by what places processes on machines."""
