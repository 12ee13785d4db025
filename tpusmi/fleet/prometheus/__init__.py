"""The fleet as a Prometheus server knows it: queries, their answers as samples, and the past."""
