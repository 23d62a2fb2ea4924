"""Starting a program: on the threads of this process, and on the processes that `timely run` starts and ends."""
