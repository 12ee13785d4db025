"""`python -m tpusmi.wire FILE…` prints segments as text: what tests compare and a person reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from tpusmi.cli.exits import ended
from tpusmi.model import PHASES
from tpusmi.pprof import ProfileError, members
from tpusmi.wire.layout import FACTS_JSON, PROFILE_PPROF, PROFILE_SITES, SLICE_JSON, SegmentError
from tpusmi.wire.reader import Sample, SegmentReader
from tpusmi.wire.slice_summary import unpacked

NOT_READABLE = "not readable"

_KINDS = {FACTS_JSON: "facts", PROFILE_PPROF: "pprof", PROFILE_SITES: "sites"}


def main(paths: list[str]) -> int:
    """Print each file; 1 when one of them is not a segment, which stderr says."""
    if not paths:
        sys.stderr.write("usage: python -m tpusmi.wire FILE…\n")
        return 2
    code = 0
    for path in paths:
        if len(paths) > 1:
            sys.stdout.write(f"== {path}\n")
        for line in dump(path):
            if line.startswith(NOT_READABLE):
                sys.stderr.write(f"{path} {line}\n")
                code = 1
            else:
                sys.stdout.write(f"{line}\n")
    return code


def dump(path: str, samples: int = 3) -> Iterator[str]:
    """Lines that describe the segment: header, facts, profile, the newest samples.

    A file that is not a segment gives one line saying so.
    """
    try:
        reader = SegmentReader(path)
    except SegmentError as error:
        yield f"{NOT_READABLE}: {error}"
        return
    try:
        yield from _segment(reader, samples)
    except SegmentError as error:
        yield f"{NOT_READABLE} to its end: {error}"
    finally:
        reader.close()


def _segment(reader: SegmentReader, samples: int) -> Iterator[str]:
    yield "version {}.{}".format(*reader.version)
    for name, value in reader.header._asdict().items():
        if name.startswith("slice_") and not reader.header.slice_half:
            continue  # a job of one process, or older than 1.4
        yield f"header {name} {value.hex() if isinstance(value, bytes) else value}"
    is_locked = reader.is_locked()
    if is_locked is not None:
        yield "lock held by its agent" if is_locked else "lock free: its agent is gone"
    sequence, facts = reader.facts()
    yield f"facts #{sequence} {json.dumps(facts, sort_keys=True)}"
    yield _profile(reader)
    if reader.header.slice_half:
        yield from _slice(reader)
    past = list(reader.past())
    yield f"samples {len(past)}"
    for sample in past[-samples:]:
        yield from _sample(sample)


def _profile(reader: SegmentReader) -> str:
    blob = reader.profile()
    if blob is None:
        return "profile none"
    text = f"profile #{blob.sequence} {_KINDS.get(blob.kind, blob.kind)} at_s {blob.at_s:.3f}"
    try:
        plain, more = members(blob.payload)
        size = len(plain) + (len(members(more)[0]) if more else 0)
    except ProfileError as error:
        return f"{text}, {len(blob.payload)} bytes: {error}"
    return f"{text}, {size} bytes unpacked"


def _slice(reader: SegmentReader) -> Iterator[str]:
    blob = reader.slice_blob()
    if blob is None or blob.kind != SLICE_JSON:
        yield "slice none"
        return
    text = f"slice #{blob.sequence} at_s {blob.at_s:.3f}"
    content = unpacked(blob.payload)
    if content is None:
        yield f"{text}: cannot be unpacked"
        return
    yield f"{text} {json.dumps(content[0])}"
    yield from (f"  process {json.dumps(line)}" for line in content[1])


def _sample(sample: Sample) -> Iterator[str]:
    yield f"sample #{sample.sequence} at_s {sample.at_s:.3f} wall_s {sample.wall_s:.3f}"
    for name, value in sample.process.items():
        yield f"  {name} {_phase(value) if name == 'phase' else f'{value:.15g}'}"
    for i, device in enumerate(sample.devices):
        fields = " ".join(f"{name}={value:.15g}" for name, value in device.items())
        yield f"  device {i}: {fields or 'nothing known'}"


def _phase(value: float) -> str:
    return PHASES[int(value)] if 0 <= value < len(PHASES) else f"unknown ({value:g})"


if __name__ == "__main__":
    sys.exit(ended(lambda: main(sys.argv[1:])))
