"""The device page."""
