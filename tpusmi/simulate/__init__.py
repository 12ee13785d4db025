"""A simulated TPU host: sysfs, device nodes that processes hold, metrics servers, faults.

It makes the inputs of a machine, so no code of the product knows it, but the command line. `host`
starts one. Nothing is imported here: the stand-in for libtpu's SDK must start at once.
"""
