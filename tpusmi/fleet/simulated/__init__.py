"""A simulated fleet: the samples that its exporters would answer."""
