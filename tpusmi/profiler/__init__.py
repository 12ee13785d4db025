"""Captures traces of running jobs, and turns each into one profile."""
