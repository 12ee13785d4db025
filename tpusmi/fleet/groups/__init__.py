"""The hosts of a fleet by job, slice or host: their totals, orders and filters. Pure."""
