"""Patterns in a filter: what they match is what `re` matches, and no text makes them slow."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.clocks import takes_at_most

from tpusmi.report.patterns import PATTERN_MOST, TEXT_MOST, PatternError, searcher


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("train.*v2", "python Train.py --name=V2", True),
        ("v2.*train", "python train.py --name=v2", False),
        (r"step\d+", "ckpt/step1200", True),
        (r"step\d+$", "ckpt/step1200/x", False),
        ("^41", "41 ann", True),
        ("^ann", "41 ann", False),
        ("gemma|llama", "run llama3", True),
        ("[a-c]x?z", "bz", True),
        ("[^a-c]z", "az", False),
        (r"a\.b", "axb", False),
        (r"\(x\)", "f(x)", True),
        ("", "anything", True),
        (".+x", "x", False),
        (r"v\d+\.\d+", "jax-v0.73", True),
    ],
)
def test_a_pattern_is_found(pattern: str, text: str, is_found: bool) -> None:
    assert searcher(pattern)(text) is is_found


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a+)+", r"( is not supported; \( is the character"),
        ("a{3}", r"{ is not supported; \{ is the character"),
        ("*a", "* needs one character before it"),
        ("a**", "* needs one character before it"),
        ("[a", "[ needs characters and a ]"),
        ("[]", "[ needs characters and a ]"),
        ("[z-a]", "bad character range z-a"),
        ("a^", "^ begins and $ ends a pattern"),
        ("a$b", "^ begins and $ ends a pattern"),
        ("a\\", r"after \ only d, w, s or a sign"),
        (r"(?i)", "( is not supported"),
        (r"\1", r"after \ only d, w, s or a sign"),
        ("a*b*c*", "at most 2 of * and + between two .*"),
        ("a?b?c?", "at most 2 ? between two .*"),
        ("a" * (PATTERN_MOST + 1), f"at most {PATTERN_MOST} characters"),
    ],
)
def test_what_is_not_a_pattern_is_said_in_a_few_words(pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        searcher(pattern)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 80


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[a-z]*[a-z]*X", "a" * TEXT_MOST),
        ("a?a?[ab]*[ab]*X", "a" * 10 * TEXT_MOST),
        (".*a.*a.*a.*a.*a.*a.*a.*a.*a.*a.*X", "a" * TEXT_MOST),
        (".*".join(["[ab]+[ab]+b"] * 5) + "X", "ab" * TEXT_MOST),
        (r"\w+\w+$", "a" * (TEXT_MOST - 1) + " "),
        ("^a.*a$", "a" * (TEXT_MOST + 1)),
        ("|".join(["a+a+X"] * 13), "a" * TEXT_MOST),
    ],
)
def test_no_text_makes_a_pattern_slow(pattern: str, text: str) -> None:
    found = searcher(pattern)
    with takes_at_most(1.0):
        assert not found(text)


_PARTS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", ".*", ".+", "a*", "b+", "a?", "|", "\\w"])


@given(st.lists(_PARTS, max_size=8).map("".join), st.text("abc", max_size=12))
def test_it_finds_what_a_regular_expression_finds(pattern: str, text: str) -> None:
    try:
        found = searcher(pattern)
    except PatternError:
        assume(False)
    assert found(text) is (re.search(pattern, text) is not None)


@given(st.text(max_size=30), st.text(max_size=50))
def test_any_text_is_a_pattern_or_an_error(pattern: str, text: str) -> None:
    with suppress(PatternError):
        assert searcher(pattern)(text) in (True, False)
