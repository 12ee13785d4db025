"""The past of a simulated fleet for a real Prometheus, put there by promtool."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from tpusmi.fleet.fleet_series import SHOWN_SERIES
from tpusmi.fleet.samples import SeriesSample
from tpusmi.fleet.simulated.simulated_samples import SCRAPE_JOB, samples
from tpusmi.simulate.fleet_job import DIED_S
from tpusmi.simulate.fleet_members import members
from tpusmi.simulate.fleet_spec import slices_of

STEP_S = 60.0
PAST_S, COARSE_S = 2400.0, 300.0
"""How far it goes back, and the time between two samples of most of that."""
FINE_S, AHEAD_S = 480.0, 240.0
"""Each minute: so much of the past, and of the time in which the test or bench runs."""
MADE_WITHIN_S = 600.0


def times_of(now_s: float) -> list[float]:
    """When the samples are of, in order."""
    coarse = int((PAST_S - FINE_S) / COARSE_S)
    fine = int((FINE_S + AHEAD_S) / STEP_S)
    return [
        *(now_s - PAST_S + COARSE_S * i for i in range(coarse)),
        *(now_s - FINE_S + STEP_S * i for i in range(fine + 1)),
    ]


def line_of(sample: SeriesSample, at_s: float | None = None) -> str:
    """A sample in the text format, or in OpenMetrics with its time."""
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.name}{{{pairs}}} {sample.value!r}" + ("" if at_s is None else f" {at_s:.3f}")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def ups(spec: str, now_s: float, at_s: float) -> Iterator[SeriesSample]:
    """What Prometheus itself says of each exporter at that time."""
    for m in members(slices_of(spec)):
        is_up = not m.is_down or at_s < now_s - DIED_S
        yield SeriesSample("up", {"instance": m.address, "job": SCRAPE_JOB}, float(is_up))


def write_openmetrics(
    path: Path, spec: str, now_s: float, names: Sequence[str] = SHOWN_SERIES
) -> int:
    """Write the past and the near future of the fleet; how many samples there are."""
    slices, chosen, written = slices_of(spec), frozenset(names), 0
    with path.open("w", encoding="utf-8") as file:
        for at_s in times_of(now_s):
            is_past = at_s < now_s - DIED_S
            at_once = samples(slices, at_s, chosen, with_dead=is_past)
            for sample in chain(at_once, ups(spec, now_s, at_s)):
                file.write(line_of(sample, at_s) + "\n")
                written += 1
        file.write("# EOF\n")
    return written


def backfill(folder: Path, spec: str, names: Sequence[str] = SHOWN_SERIES) -> int:
    """Make the blocks of a Prometheus in that folder, in which `scrapers.prometheus` starts it; how
    many samples there are.
    """
    text = folder / "samples.txt"
    written = write_openmetrics(text, spec, time.time(), names)
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text)]
    subprocess.run(
        [*command, str(folder / "data")],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=MADE_WITHIN_S,
    )
    text.unlink()
    return written
