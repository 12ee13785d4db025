"""Reads the answer of an exporter: Prometheus' text format, or OpenMetrics. Every pattern takes
linear time, and a line that is not read costs next to nothing: a stranger may have written it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Set
from itertools import islice

from tpusmi.fleet.fleet_series import STATES
from tpusmi.fleet.samples import SeriesSample
from tpusmi.model.series_names import PREFIX

SAMPLES_MOST = 20_000
"""In one answer. A host with 16 devices and 64 processes has 3,000."""
LINE_MOST = 16 * 1024
"""Characters."""
LABELS_MOST = 64
NUMBER_MOST = 400
"""Characters. The longest number that a program prints in full has 309 digits."""
KEPT_BYTES_MOST = 1 << 20
"""All lines that are read, together."""
HEAD_CHARACTERS = 4096
FAMILIES = {"node_": "node_exporter", "DCGM_": "dcgm-exporter", "container_": "cAdvisor"}
"""Other exporters, by how the names of their series begin."""

_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*(,|\})')
_VALUE = re.compile(r"\s*([^\s#]+)(?:\s+([^\s#]+))?\s*(?:#.*)?")
"""A value, then a time, then an exemplar. The last two are not used."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf|nan", re.IGNORECASE)
_ESCAPE = re.compile(r'\\([\\n"])')


class ExpositionError(ValueError):
    """What is wrong with the answer, in a sentence."""


def samples_in(body: bytes, content_type: str, names: Set[str]) -> list[SeriesSample]:
    """Its samples with one of these names. NaN and infinite values are left out, and
    states other than the present one. Raises ExpositionError.
    """
    text = body.decode("utf-8", "replace")
    if content_type == "text/html" or text[:HEAD_CHARACTERS].lstrip()[:1] == "<":
        raise ExpositionError("it answers with a web page: is it an exporter?")
    samples = list(islice(_samples(text, names), SAMPLES_MOST + 1))
    if len(samples) > SAMPLES_MOST:
        raise ExpositionError(f"it has more than {SAMPLES_MOST} numbers")
    if not samples and f"\n{PREFIX}" not in f"\n{text}":
        raise ExpositionError(_without_series(text))
    return samples


def _samples(text: str, names: Set[str]) -> Iterator[SeriesSample]:
    left = KEPT_BYTES_MOST
    for line in text.split("\n"):
        if not line.startswith(PREFIX):
            continue
        match = _NAME.match(line)
        if match is None or match[0] not in names:
            continue
        left -= len(line)
        if len(line) > LINE_MOST or left < 0:
            raise ExpositionError("it has lines that are too long")
        sample = _sample(match[0], line, match.end())
        if math.isfinite(sample.value) and (sample.value == 1 or sample.name not in STATES):
            yield sample


def _sample(name: str, line: str, at: int) -> SeriesSample:
    labels: dict[str, str] = {}
    brace = line.find("{", at)
    if brace >= 0 and not line[at:brace].strip():
        at = _read_labels(line, brace + 1, labels)
    match = _VALUE.fullmatch(line, at)
    if match is None or not (_is_number(match[1]) and _is_number(match[2] or "0")):
        raise _broken(name)
    return SeriesSample(name, labels, float(match[1]))


def _is_number(text: str) -> bool:
    return len(text) <= NUMBER_MOST and _NUMBER.fullmatch(text) is not None


def _read_labels(line: str, at: int, labels: dict[str, str]) -> int:
    """Adds the labels; returns where the line goes on after the brace."""
    end = ""
    while end != "}":
        if line[at:].lstrip()[:1] == "}":
            return line.index("}", at) + 1
        match = _LABEL.match(line, at)
        if match is None or match[1] in labels or len(labels) >= LABELS_MOST:
            raise _broken(line)
        value = match[2]
        labels[match[1]] = _ESCAPE.sub(_unescaped, value) if "\\" in value else value
        at, end = match.end(), match[3]
    return at


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _broken(name: str) -> ExpositionError:
    head = _NAME.match(name)
    return ExpositionError(f"a line of {head[0][:80] if head else 'it'} is not in the text format")


def _without_series(text: str) -> str:
    """A sentence about an answer without any series of tpusmi."""
    for start, exporter in FAMILIES.items():
        if f"\n{start}" in text or text.startswith(start):
            return f"it is {exporter}, not tpusmi serve: it has no numbers of a TPU"
    is_text = any(_NAME.match(line) or line[:1] == "#" for line in text.split("\n", 50)[:50])
    if is_text:
        return "it is another exporter: it has no series of tpusmi serve"
    return "its answer is not in the text format of Prometheus"
