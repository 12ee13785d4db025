"""Profiles for tests."""

from __future__ import annotations

from typing import Any

from tpusmi.trace.figures import FILE, Capture, TimeShares, TraceProfile


def empty_profile(path: str, **figures: Any) -> TraceProfile:
    """A profile without any figure but these."""
    unknown = dict.fromkeys(TraceProfile._fields)
    many = dict.fromkeys(("cores", "operations", "programs", "memory", "notes"), ())
    profile = TraceProfile(**{**unknown, **many, "sources": {}, "shares": TimeShares()})
    return profile._replace(capture=Capture(how=FILE, target=path), **figures)
