"""One GET from a server: its address, configuration, credentials, proxy, and limits on it all."""
