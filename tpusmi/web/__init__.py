"""The dashboard in a browser: a server of pages, each with a dashboard of its own behind it."""
