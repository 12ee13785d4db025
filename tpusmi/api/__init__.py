"""The objects of `tpusmi.snapshot()`: a snapshot with the names of the JSON, for scripts."""
