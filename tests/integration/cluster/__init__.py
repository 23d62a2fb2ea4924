"""Programs started by what places processes on machines: real ones, which the tests install and start."""
