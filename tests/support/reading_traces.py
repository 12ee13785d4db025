"""Reads traces as `tpusmi profile` does, one after the other, in a process of its own.

`python reading_traces.py SECONDS TRACE…` writes a line of JSON for each trace: what came of it, how
long it took, and the most memory that the process has had until then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

CRASHED = "crashed"


class Reading(NamedTuple):
    """What came of reading one trace."""

    trace: str
    trouble: str | None
    """None where there is a profile, and CRASHED where another error than expected was raised."""
    text: str
    """The sentence of the error, or the page."""
    took_s: float
    peak_mib: float
    profile: dict[str, Any] | None = None


def readings(traces: Sequence[Path], seconds: float, limit_s: float = 100.0) -> list[Reading]:
    """One for each; every trace may take so many seconds."""
    command = [sys.executable, __file__, str(seconds), *map(str, traces)]
    done = subprocess.run(command, capture_output=True, timeout=limit_s, check=False)
    assert not done.stderr, done.stderr.decode()[-2000:]
    return [Reading(**json.loads(line)) for line in done.stdout.splitlines()]


def main(seconds: float, traces: Sequence[str]) -> None:
    """Read them, and write what came of it."""
    for trace in traces:
        sys.stdout.write(f"{json.dumps(_read(trace, seconds)._asdict(), allow_nan=False)}\n")
        sys.stdout.flush()


def _read(trace: str, seconds: float) -> Reading:
    from tpusmi.report.profile.profile_text import lines
    from tpusmi.trace.direct import read_trace
    from tpusmi.trace.limits import TraceLimits
    from tpusmi.trace.plain_objects import from_object, to_object
    from tpusmi.trace.troubles import CaptureError

    began_s = time.monotonic()
    trouble, profile = None, None
    try:
        read = read_trace(trace, TraceLimits(until_s=began_s + seconds))
        took_s = time.monotonic() - began_s
        page = ["".join(part for part, _ in line) for line in lines([read], 100)]
        text = "\n".join(page)
        plain = json.loads(json.dumps(to_object(read), allow_nan=False))
        assert json.loads(json.dumps(to_object(from_object(plain)))) == plain
        profile = plain
    except CaptureError as error:
        took_s = time.monotonic() - began_s
        trouble, text = error.trouble.value, str(error)
    except Exception:  # noqa: BLE001  # the test shows it
        took_s = time.monotonic() - began_s
        trouble, text = CRASHED, traceback.format_exc(limit=-3)
    return Reading(
        trace=trace,
        trouble=trouble,
        text=text,
        took_s=took_s,
        peak_mib=peak_mib(),
        profile=profile,
    )


def peak_mib() -> float:
    """The most memory that this process has had. ru_maxrss would be that of its parent, if more."""
    with open("/proc/self/status", encoding="ascii") as file:
        peak = next(line for line in file if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
