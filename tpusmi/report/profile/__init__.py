"""A profile as a page of text, as JSON, as lines of the old monitor, and beside an older one."""
