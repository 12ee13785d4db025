"""Stand-ins for `tpusmi profile PID --json`: children that print a profile, or fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tpusmi.trace.figures import TraceProfile

_HEAD = f"""
import json, os, signal, sys, time
sys.path[:0] = {[*map(os.path.abspath, sys.path)]!r}
def say(text):
    print("tpusmi: " + text, file=sys.stderr, flush=True)
"""


def script(body: str) -> tuple[str, ...]:
    """The command of a child that runs that program; its arguments are those of `tpusmi`."""
    return (sys.executable, "-c", _HEAD + body)


def printing(make: Callable[[], TraceProfile]) -> tuple[str, ...]:
    """A child that prints the profile which that function of `support.profiles` makes."""
    return script(
        f"""
from support import profiles
from tpusmi.trace.plain_objects import to_object
say("waiting for the trace")
print(json.dumps(to_object(profiles.{make.__name__}())))
"""
    )


def failing(sentence: str, code: int = 3) -> tuple[str, ...]:
    """A child that ends with a sentence and that exit code."""
    return script(f"say({sentence!r}); sys.exit({code})")


def waiting(mark: str = "", sentence: str = "waiting for the trace") -> tuple[str, ...]:
    """A child that never comes to an end, and writes its pid and then `removed` into a file."""
    return script(
        f"""
mark = {mark!r}
def note(text):
    if mark:
        open(mark, "a").write(text + "\\n")
note(str(os.getpid()))
say({sentence!r})
try:
    time.sleep(600)
except KeyboardInterrupt:
    note("removed")
    sys.exit(130)
"""
    )
