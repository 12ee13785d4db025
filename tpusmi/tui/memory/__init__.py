"""The page of what holds the device memory."""
