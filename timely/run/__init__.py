"""Running a program: on threads of this process, and on processes that `timely run` starts and ends."""
