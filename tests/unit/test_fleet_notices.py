"""The notices of a fleet in words: what exporters send are codes."""

from __future__ import annotations

import re

import pytest
from support.fleet_hosts import host, notice, process

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.merge import advice
from tpusmi.tui.fleet.fleet_notices import about_slice, meaning, of_fleet, of_host


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


def test_what_all_hosts_of_a_slice_have_is_there_once_and_names_those_that_it_is_about() -> None:
    processes = [process(7, **{"step_time_s.mean": 2.0 if n == 2 else 1.0}) for n in range(4)]
    both = (notice("slice_silent", pid=7), notice("slice_silent", pid=8))
    slow = notice("slice_straggler", pid=7)
    hosts = [host(f"w{n}", slice="s", processes=(p,)) for n, p in enumerate(processes)]
    hosts.append(host("w4", slice="s", state=HostState.DOWN))
    silent, late = about_slice(hosts[0]._replace(notices=(*both, slow)), hosts)
    assert silent.message.startswith("w4: hosts of the job have stopped reporting")
    assert late.message.startswith("w2: a host takes longer for its steps")
    assert silent.pid is late.pid is None


def test_a_notice_of_a_slice_about_unknown_hosts_names_the_slice() -> None:
    warned = host("w0", slice="s", notices=(notice("slice_memory"), notice("throttled", chip=0)))
    (line,) = about_slice(warned, [warned])
    assert line.message.startswith("slice s: a host holds more device memory")
    (alone,) = about_slice(warned._replace(slice=None), [])
    assert alone.message.startswith("w0: ")
