"""The slice page: every host of a job that has several."""
