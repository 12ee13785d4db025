"""The page of one job."""
