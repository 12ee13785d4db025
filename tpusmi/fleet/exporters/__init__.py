"""The fleet as its exporters report it, without a Prometheus server."""
