"""What several pages show of a process: facts, details, and its memory over time."""
