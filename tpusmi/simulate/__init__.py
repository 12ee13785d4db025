"""A simulated TPU host: sysfs, device nodes that processes hold, metrics servers, faults."""
