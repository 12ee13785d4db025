"""Reads profiler traces (XSpace): what each core did, step by step. Trusts none of their bytes."""
