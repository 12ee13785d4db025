"""The notices of a fleet in words: what exporters send are codes."""

from __future__ import annotations

import re

import pytest
from support.fleet_hosts import host, notice

from tpusmi.merge import advice
from tpusmi.tui.fleet.fleet_notices import meaning, of_fleet, of_host


@pytest.mark.parametrize("code", sorted({row[0] for row in advice.rows()}))
def test_no_sentence_has_a_place_for_a_number_that_no_exporter_sends(code: str) -> None:
    what, _ = meaning(code)
    assert not re.search(r"\bN\b|[{}]", what)


def test_a_code_with_several_causes_does_not_claim_one_of_them() -> None:
    what, _ = meaning("busy_without_mxu")
    assert "memory or communication" in what


def test_a_starved_host_is_named_in_a_whole_sentence() -> None:
    n = notice("starved", pid=7)
    (line,) = of_fleet([host("w3", notices=(n,))])
    assert line.message.startswith("w3: its chips are busy for only part of the time")
    assert of_host(n).message.startswith("its chips are busy for only part of the time")
