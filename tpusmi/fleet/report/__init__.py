"""A fleet as table, CSV, JSON, and the torus of a slice. Pure."""
