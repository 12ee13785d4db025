"""The dashboard in a browser: a server, and a separate dashboard behind each tab."""
