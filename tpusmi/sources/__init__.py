"""Where facts are found: one file per place that is read."""
