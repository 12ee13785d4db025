"""Views of a process that several pages share: facts, details, and its memory over time."""
