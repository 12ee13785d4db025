"""The main page: host, devices, history and processes."""
