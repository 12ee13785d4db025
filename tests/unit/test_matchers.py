"""What a user may write after `--match`, and what is sent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.fleet.prometheus.matchers import TEXT_MOST, Matcher, exactly, matchers, quoted, selector


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('{job="tpusmi"}', 'a{job="tpusmi"}'),
        ('job="tpusmi",slice=~"pod-.*"', 'a{job="tpusmi",slice=~"pod-.*"}'),
        ("slice=pod-7", 'a{slice="pod-7"}'),
        ("slice = pod-7 , host != x,", 'a{slice="pod-7",host!="x"}'),
        ("host!~'tpu-vm-[0-9]+'", 'a{host!~"tpu-vm-[0-9]+"}'),
        (r"host=~`a\.b`", r'a{host=~"a\\.b"}'),
        (r'host="a\\\"b\n"', r'a{host="a\\\"b\x0a"}'),
        (r'host="\u00e9\x41"', 'a{host="éA"}'),
        ('host="a,b}"', 'a{host="a,b}"}'),
        ('host=""', 'a{host=""}'),
    ],
)
def test_a_matcher_is_sent_as_promql(text: str, sent: str) -> None:
    assert selector("a", matchers([text])) == sent


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no matcher"),
        ("{}", "has no matcher"),
        ("pod-7", "is not a matcher such as"),
        ("job==x", "must be in quotes"),
        ("job=", "must be in quotes"),
        ('job="x', "must be in quotes"),
        ('job="x" slice="y"', "a comma is missing after the value of job"),
        ('up{job="x"}', "the name of a series cannot be chosen"),
        ('__name__="up"', "the name of a series cannot be chosen"),
        ('job="x"} or vector(1) or up{a="', "a comma is missing"),
        (r'job="\q"', "is not an escape of PromQL"),
        ("1job=x", "is not a matcher"),
        ("job=x," * 21, "at most 20 matchers"),
        ("j" * (TEXT_MOST + 1), f"at most {TEXT_MOST} characters"),
        ("job\x1b[31m=\x00", "is not a matcher"),
    ],
)
def test_what_is_not_a_matcher_ends_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)) as refused:
        matchers([text])
    assert str(refused.value).isprintable()


def test_a_series_must_fit_all_of_them() -> None:
    assert [str(m) for m in matchers(["job=a", "slice=b"])] == ['job="a"', 'slice="b"']
    assert selector("up", ()) == "up"


@given(st.text())
def test_no_value_ends_its_text(value: str) -> None:
    sent = quoted(value)
    assert sent[0] == sent[-1] == '"'
    assert '"' not in sent[1:-1].replace("\\\\", "").replace('\\"', "")
    assert "\n" not in sent


@given(st.text(st.characters(codec="utf-8"), max_size=100))
def test_what_is_sent_means_the_value(value: str) -> None:
    assert matchers([f"a={quoted(value)}"]) == (Matcher("a", "=", value),)


def test_labels_of_a_host_select_it_exactly() -> None:
    labels = {"instance": 'a"b\\', "slice": "", "with-dash": "x"}
    assert [str(m) for m in exactly(labels)] == ['instance="a\\"b\\\\"']
