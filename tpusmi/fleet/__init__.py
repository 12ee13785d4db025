"""Many hosts at once: what a Prometheus server or their exporters say about all of them."""
