"""Starting a program by what places processes on machines: Slurm, MPI, Kubernetes, Ray, systemd.

`timely run --on SYSTEM script.py` finds the module of that name here. Where the system has started this process, as
Slurm, MPI and Kubernetes do, `placed(config)` yields the configuration of this process. It learns its index from the
environment and the rest from its peers: their addresses, the name of this run, and keys (`rendezvous`). Ray is asked
for processes instead (`ray.launch`). The other modules write the files with which a system starts processes.

Nothing here is imported unless it is asked for, so a run on one machine does not pay for it.
"""
