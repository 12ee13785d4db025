"""Times in the past, as a user writes them."""

from __future__ import annotations

import time

import pytest

from tpusmi.cli.past_times import unix_time

NOW_S = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("1790000000", 1_790_000_000.0),
        ("1790000000.25", 1_790_000_000.25),
        ("2026-09-21T14:13:20Z", 1_790_000_000.0),
        ("2026-09-21t14:13:20.250z", 1_790_000_000.25),
        ("2026-09-21T16:13:20+02:00", 1_790_000_000.0),
        ("2026-09-21T14:13:20.123456789Z", 1_790_000_000.123456789),
        ("5m", NOW_S - 300),
        ("2h30m", NOW_S - 9000),
        ("2h ago", NOW_S - 7200),
        ("1w", NOW_S - 604_800),
        ("0s", NOW_S),
    ],
)
def test_a_time_is_that_of_promtool_or_so_long_ago(text: str, at_s: float) -> None:
    assert unix_time(text, NOW_S) == pytest.approx(at_s, abs=1e-6)


def test_a_time_without_an_offset_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-3")  # three hours ahead
    time.tzset()
    try:
        assert unix_time("2026-09-21 17:13:20", NOW_S) == 1_790_000_000.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a time"),
        ("5x", "is not a time"),
        ("-5m", "is not a time"),
        ("nan", "is not a time"),
        ("1e9", "is not a time"),
        ("1_000", "is not a time"),
        ("2026-13-01T00:00:00Z", "is not a time"),
        ("0001-01-01T00:00:00+23:59", "is not a time"),
        ("٥m", "is not a time"),
        ("9" * 10_000, "is not a time"),
        ("m" * 10_000, "is not a time"),
        ("2h30m" * 10_000, "is not a time"),
        ("1800000100", "is in the future"),
        ("99999999w", "is before 1970"),
        ("0", "is before 1970"),
    ],
)
def test_what_is_not_a_past_time_is_refused_in_a_short_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        unix_time(text, NOW_S)
    assert len(str(error.value)) < 160
