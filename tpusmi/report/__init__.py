"""A Snapshot as table, JSON, CSV. Pure: text out, nothing read."""
