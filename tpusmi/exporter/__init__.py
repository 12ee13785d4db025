"""`tpusmi serve`: a host's snapshot as metrics for Prometheus, over HTTP or as a text file."""
