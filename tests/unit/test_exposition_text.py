"""The answer of an exporter as samples: what prometheus_client writes, and what a stranger does."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from support.clocks import takes_at_most

from tpusmi.fleet.exporters.exposition_text import (
    LABELS_MOST,
    SAMPLES_MOST,
    ExpositionError,
    samples_in,
)

NAME = "tpusmi_hbm_used_bytes"
NAMES = frozenset((NAME, "tpusmi_process_phase", "tpusmi_process_steps_total"))


class Scrape:
    def __init__(self, *families: GaugeMetricFamily) -> None:
        self._families = families

    def collect(self) -> tuple[GaugeMetricFamily, ...]:
        return self._families


def family(labels: dict[str, str], value: float) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(NAME, "Memory\nin use.", labels=[*labels])
    gauge.add_metric([*labels.values()], value)
    return gauge


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(st.dictionaries(st.sampled_from(("chip", "device", "host", "l_1")), TEXT), st.floats())
def test_what_prometheus_client_writes_is_read_as_it_was(
    labels: dict[str, str], value: float
) -> None:
    scrape = Scrape(family(labels, value))
    for text in (generate_latest(scrape), as_openmetrics(scrape)):
        samples = samples_in(text, "", NAMES)
        if not math.isfinite(value):
            assert samples == []
            continue
        assert [(s.name, s.labels, s.value) for s in samples] == [(NAME, labels, value)]


@given(st.sampled_from(" {"), st.text(st.sampled_from('{}",\\= \tan1#.e+-_\r'), max_size=40))
@example(" ", "1 =")
def test_what_is_read_is_what_prometheus_client_reads(first: str, rest: str) -> None:
    """It takes more than the format allows; what both take means the same to both."""
    text = f"{NAME}{first}{rest}\n"
    try:
        ours = samples_in(text.encode(), "", NAMES)
    except ExpositionError:
        return
    try:
        theirs = [s for f in text_string_to_metric_families(text) for s in f.samples]
    except (ValueError, IndexError):
        pytest.fail(f"prometheus_client refuses {text!r}") if "#" not in rest else None
        return
    kept = [s for s in theirs if s.name == NAME and math.isfinite(s.value)]
    assert [(s.labels, s.value) for s in ours] == [(s.labels, s.value) for s in kept]


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        (f"{NAME} 5", {}, 5.0),
        (f"{NAME}{{}} 5", {}, 5.0),
        (f'{NAME} {{ chip = "0" , }} 5e3 1700000000000', {"chip": "0"}, 5000.0),
        (f'{NAME}{{chip="a\\\\b\\"c\\nd"}} -1.5\r', {"chip": 'a\\b"c\nd'}, -1.5),
        (f'{NAME}{{chip="}} 1 # {{"}} 2 17.5 # {{trace_id="x"}} 0.5', {"chip": "} 1 # {"}, 2.0),
    ],
)
def test_spaces_times_escapes_and_exemplars_are_read(
    line: str, labels: dict[str, str], value: float
) -> None:
    (sample,) = samples_in(f"# HELP x\n{line}\n# EOF\n".encode(), "", NAMES)
    assert (sample.labels, sample.value) == (labels, value)


@pytest.mark.parametrize(
    "rest",
    ["", " ", "{", '{chip="0" 5', '{chip="0"}', '{chip=0} 5', '{chip="0",chip="1"} 5', " five",
     " 0x10", " 1_000", " 1 2 3", " 1 =",
     " 1 soon", '{"chip"="0"} 5', ' 5 # {trace_id="x"} 1 } 2 \n' + NAME + " x"],
)  # fmt: skip
def test_a_line_in_another_format_costs_the_whole_answer(rest: str) -> None:
    with pytest.raises(ExpositionError, match=f"a line of {NAME} is not in the text format"):
        samples_in(f"{NAME}{rest}\n".encode(), "", NAMES)


def test_states_that_are_not_the_present_one_are_left_out() -> None:
    text = 'tpusmi_process_phase{phase="a"} 0\ntpusmi_process_phase{phase="b"} 1\n'
    assert [s.labels["phase"] for s in samples_in(text.encode(), "", NAMES)] == ["b"]


def test_a_broken_line_of_a_series_that_is_not_read_costs_nothing() -> None:
    assert samples_in(b"tpusmi_other{{{ x\ngarbage\xff\n", "", NAMES) == []


@pytest.mark.parametrize(
    ("body", "kind", "sentence"),
    [
        (b"<!DOCTYPE html><html>", "text/html", "a web page"),
        (b"\n  <html>", "text/plain", "a web page"),
        (b"# HELP node_load1 x\nnode_load1 0.5\n", "text/plain", "it is node_exporter, not"),
        (b'up{a="b"} 1\n', "text/plain", "another exporter"),
        (b'{"status": "success"}', "application/json", "not in the text format"),
        (b"", "text/plain", "not in the text format"),
        (b"\x00\x01\x02", "", "not in the text format"),
    ],
)
def test_the_answer_of_something_else_says_what_it_is(
    body: bytes, kind: str, sentence: str
) -> None:
    with pytest.raises(ExpositionError, match=sentence):
        samples_in(body, kind, NAMES)


def test_too_many_samples_and_labels_end_in_a_sentence() -> None:
    many = f"{NAME} 1\n" * (SAMPLES_MOST + 1)
    with pytest.raises(ExpositionError, match=f"more than {SAMPLES_MOST} numbers"):
        samples_in(many.encode(), "", NAMES)
    labels = ",".join(f'l{n}="x"' for n in range(LABELS_MOST + 1))
    with pytest.raises(ExpositionError, match="not in the text format"):
        samples_in(f"{NAME}{{{labels}}} 1\n".encode(), "", NAMES)
    with pytest.raises(ExpositionError, match="too long"):
        samples_in(f'{NAME}{{chip="{"x" * 20_000}"}} 1\n'.encode(), "", NAMES)


@pytest.mark.parametrize(
    "line",
    [
        f'{NAME}{{chip="' + '\\"' * 8000,
        f"{NAME}{{" + " " * 16_000,
        f"{NAME} 1" + " " * 16_000 + "x y",
        f"{NAME}" + " " * 16_000,
        f"{NAME} " + "1" * 16_000 + "x",
        f'{NAME}{{' + 'a="",' * 3000,
        f'{NAME}{{chip="' + "\\" * 15_999,
    ],
)  # fmt: skip
def test_no_line_takes_long(line: str) -> None:
    with takes_at_most(1.0):
        for _ in range(20):
            with pytest.raises(ExpositionError):
                samples_in(line.encode(), "", NAMES)
