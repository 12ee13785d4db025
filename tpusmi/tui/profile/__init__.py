"""The profile page: what a short trace of a job shows."""
