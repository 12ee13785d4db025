"""The fleet as its exporters report it: hosts that come, hang, lie, age and go."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.exporter_servers import (
    BOOT,
    Listening,
    answer,
    exposition,
    hangs,
    listening,
    says,
    trickles,
    wait_for,
    zipped,
)
from support.waits import with_a_short_limit

from tpusmi.fleet.exporters import exporter_record, exporters_fleet
from tpusmi.fleet.exporters.exporter_addresses import Exporter
from tpusmi.fleet.exporters.exporter_record import ExporterReading, ExporterRecord
from tpusmi.fleet.exporters.exporters_fleet import ExporterFleet
from tpusmi.fleet.exporters.means_ring import MeansRing
from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostState, without_numbers
from tpusmi.fleet.fleet_source import FleetError, FleetSource
from tpusmi.fleet.http import name_lookup
from tpusmi.fleet.http.http_address import HttpServer

GIB = 1 << 30
FIRST_LOOK_S, FIRST_ANSWER_S = exporters_fleet.FIRST_LOOK_S, exporters_fleet.FIRST_ANSWER_S
pytestmark = pytest.mark.usefixtures("no_proxies")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters are asked again at once, and have the time that they need on a busy machine."""
    for name in ("FIRST_LOOK_S", "FIRST_ANSWER_S", "ANSWER_S", "PATIENCE_S"):
        monkeypatch.setattr(exporters_fleet, name, 40.0)
    monkeypatch.setattr(exporters_fleet, "EVERY_S", 0.0)
    monkeypatch.setattr(exporter_record, "AGAIN_S", 0.05)


@contextmanager
def fleet(*addresses: object) -> Iterator[ExporterFleet]:
    source = ExporterFleet(",".join(map(str, addresses)), None)
    try:
        yield source
    finally:
        source.close()


def worker(name: str = "worker-0", **values: float) -> Callable[[], bytes]:
    return lambda: answer(exposition(name, **values))


def states(s: FleetSnapshot) -> dict[str, tuple[str, str]]:
    return {h.name: (h.state.value, h.reason) for h in s.hosts}


def only(source: ExporterFleet) -> FleetHost:
    (host,) = source.snapshot().hosts
    return host


def test_the_numbers_that_an_exporter_has_are_those_of_the_host() -> None:
    with (
        listening(says(worker(hbm_used_bytes=5 * GIB, tensorcore_utilization_ratio=0.5))) as a,
        fleet(a) as source,
    ):
        s = source.snapshot()
        like: FleetSource = source
        assert like.label == str(a)
    (host,) = s.hosts
    assert (host.key, host.address, host.name) == (str(a), str(a), "worker-0")
    assert (host.state, host.reason, host.chips) == (HostState.LIVE, "", 1)
    assert host.age_s is not None
    assert host.age_s < 30
    assert host.devices[0].values == {
        "hbm_used_bytes": 5 * GIB,
        "tensorcore_utilization_percent": 50.0,
    }
    assert (s.source, s.problems) == ("1 exporter", ())


def test_compressed_openmetrics_is_read_in_the_same_way() -> None:
    text = exposition(hbm_used_bytes=1.0) + "# EOF\n"
    with listening(says(zipped(text))) as a, fleet(a) as source:
        assert only(source).devices[0].values == {"hbm_used_bytes": 1.0}
        assert b"Accept: text/plain" in a.asked[0]
        assert b"Accept-Encoding: gzip" in a.asked[0]


@with_a_short_limit
def test_hosts_that_hang_trickle_or_are_dead_delay_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters_fleet, "FIRST_LOOK_S", FIRST_LOOK_S)
    monkeypatch.setattr(exporters_fleet, "FIRST_ANSWER_S", FIRST_ANSWER_S)
    with ExitStack() as stack:
        good = [stack.enter_context(listening(says(worker(f"w{n}")))) for n in range(8)]
        bad = [stack.enter_context(listening(hangs)) for _ in range(3)]
        bad.append(stack.enter_context(listening(trickles(answer("x" * 999)))))
        with fleet(*bad, *good, "127.0.0.1:1") as source:
            began_s = time.monotonic()
            first = source.snapshot()
            first_s = time.monotonic() - began_s
            found = states(first)
            assert [found[f"w{n}"] for n in range(8)] == [("live", "")] * 8
            for one in bad:
                assert found[str(one)] == ("down", "it does not answer in time")
            assert found["127.0.0.1:1"] == ("down", "nothing listens there (connection refused)")
            assert first_s < FIRST_LOOK_S + 1.0
            began_s = time.monotonic()
            assert len(source.snapshot().hosts) == 13
            assert time.monotonic() - began_s < 1.0


@with_a_short_limit
def test_what_is_printed_names_the_exporters_that_had_no_time_to_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exporters_fleet, "FIRST_LOOK_S", 0.3)
    with listening(hangs) as slow, listening(says(worker())) as good, fleet(slow, good) as source:
        s = source.snapshot()
    assert states(s)[str(slow)] == ("pending", "it has not answered yet")
    assert s.problems == (f"1 exporter had no time to answer yet: {slow}",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (answer("<html>", kind="text/html"), "it answers with a web page: is it an exporter?"),
        (answer("node_load1 1\n"), "it is node_exporter, not tpusmi serve: it has no numbers"),
        (
            answer('# TYPE prometheus_build_info gauge\nprometheus_build_info{version="2"} 1\n'),
            "it is a Prometheus server: name it with --prometheus",
        ),
        (answer("", "401 Unauthorized"), "it wants a password: see --http-config"),
        (answer("", "302 Found", Location="http://x/"), "it redirects to http://x/, which is not"),
        (answer("x" * (5 << 20)), "its answer is longer than 4096 KiB"),
        (zipped("x" * (50 << 20)), "its answer is longer than 4096 KiB"),
        (answer(exposition("a") + exposition("b")), "it reports 2 hosts: is it a Prometheus? see"),
        (answer("tpusmi_hbm_used_bytes x\n"), "a line of tpusmi_hbm_used_bytes is not in the text"),
        (answer("tpusmi_source_up 1\n"), "it has no numbers of a host"),
    ],
)
def test_answers_of_strangers_end_in_a_sentence(data: bytes, reason: str) -> None:
    with listening(says(data)) as a, fleet(a) as source:
        host = only(source)
    assert host.state is HostState.DOWN
    assert host.reason.startswith(reason)
    assert (host.name, host.devices, host.age_s, host.chips) == (str(a), (), None, None)


def test_a_long_answer_is_read_too() -> None:
    padding = "".join(f"# HELP x {'y' * 90}\n" for _ in range(9000))
    with listening(says(answer(padding + exposition(hbm_used_bytes=1.0)))) as a, fleet(a) as source:
        assert only(source).state is HostState.LIVE
        before = len(a.asked)
        assert only(source).state is HostState.LIVE
        assert len(a.asked) - before <= 2  # the second time it is known to be long


def test_labels_of_a_stranger_are_cleaned_and_cannot_take_the_place_of_another_host() -> None:
    evil = exposition("evil\\n\x1b[2J" + "x" * 5000, labels={"instance": "worker-1:8781"})
    with listening(says(answer(evil))) as a, fleet(a) as source:
        host = only(source)
    assert (host.key, host.address) == (str(a), str(a))
    assert "\x1b" not in host.name
    assert "\n" not in host.name
    assert len(host.name) < 300


def test_nan_and_infinite_values_are_unknown() -> None:
    with (
        listening(says(worker(hbm_used_bytes=float("nan"), hbm_limit_bytes=float("inf")))) as a,
        fleet(a) as source,
    ):
        assert only(source).devices[0].values == {}


# -- hosts that stop, and come back


def test_the_last_numbers_of_a_dead_host_are_old_and_then_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exporter_record, "AGAIN_MOST_S", 0.1)
    with ExitStack() as stack:
        with listening(says(worker(hbm_used_bytes=1.0))) as a:
            source = stack.enter_context(fleet(a))
            assert only(source).state is HostState.LIVE
        wait_for(lambda: only(source).state is HostState.OLD, "it is old")
        host = only(source)
        assert host.reason == "nothing listens there (connection refused)"
        assert host.devices[0].values == {"hbm_used_bytes": 1.0}
        monkeypatch.setattr(exporter_record, "DROPPED_AFTER_S", 0.0)
        wait_for(lambda: only(source).state is HostState.DOWN, "its numbers are dropped")
        assert (only(source).devices, only(source).name) == ((), "worker-0")
        with listening(says(worker()), port=a.port):
            wait_for(lambda: only(source).state is HostState.LIVE, "it is back")


def test_a_host_that_is_back_with_the_numbers_from_before_is_old() -> None:
    """As after a crash: node_exporter runs again, and `tpusmi serve --textfile` does not."""
    record = ExporterRecord(Exporter(HttpServer("a", 1)), MeansRing(()))
    host, at_s = without_numbers("a", "a", "a", HostState.LIVE, ""), time.time()
    for seconds in (0, 1):
        assert record.succeed(ExporterReading(host, at_s + seconds, None), 1.0)
    record._new_at_s -= 400.0
    record.fail("it does not answer in time")
    assert (record.reading, record.host().state) == (None, HostState.DOWN)
    assert not record.succeed(ExporterReading(host, at_s + 1, None), 1.0)
    assert record.host().state is HostState.OLD
    assert record.host().reason.startswith("its numbers have not changed for 6m4")
    assert record.succeed(ExporterReading(host, at_s + 2, None), 1.0)
    assert record.host().state is HostState.LIVE


def test_a_host_that_fails_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_record, "AGAIN_S", 0.1)
    asked_s: list[float] = []

    def fails() -> bytes:
        asked_s.append(time.monotonic())
        return answer("", "500 Oh no")

    with listening(says(fails)) as a, fleet(a) as source:
        wait_for(lambda: source.snapshot() and len(asked_s) > 3, "it is asked again")
    for number, (before_s, again_s) in enumerate(pairwise(asked_s)):
        assert again_s - before_s >= 0.1 * 2**number


def test_numbers_that_do_not_change_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a file that `tpusmi serve --textfile` no longer writes."""
    text = answer(exposition(at_s=time.time()))
    with listening(says(text)) as a, fleet(a) as source:
        assert only(source).state is HostState.LIVE
        monkeypatch.setattr(exporter_record, "UNCHANGED_AFTER_S", 0.5)
        unchanged = "its numbers have not changed for "
        wait_for(lambda: only(source).reason.startswith(unchanged), "it is old")
        assert only(source).state is HostState.OLD


def test_a_clock_that_is_wrong_makes_no_host_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters_fleet, "EVERY_S", 3600.0)  # one answer in the first look
    with (
        listening(says(lambda: answer(exposition(at_s=time.time() - 900)))) as a,
        fleet(a) as source,
    ):
        first = only(source)
        assert first.state is HostState.OLD
        assert first.reason == "its numbers are 15m old, or its clock is that late"
        for record in source._records.values():
            record.next_at_s = 0.0
        wait_for(lambda: only(source).state is HostState.LIVE, "its clock goes on")
        assert (only(source).age_s or 0) < 60


def test_numbers_of_the_future_are_live_once_they_change() -> None:
    ahead_s = [900.0]
    at_s = time.time()
    with (
        listening(says(lambda: answer(exposition(at_s=at_s + ahead_s[0])))) as a,
        fleet(a) as source,
    ):
        for _ in range(2):
            first = only(source)
            assert (first.state, first.age_s) == (HostState.OLD, None)
            assert first.reason == "its clock is ahead, so the age of its numbers is not known yet"
        ahead_s[0] += 1
        wait_for(lambda: only(source).state is HostState.LIVE, "its clock goes on")
        assert (only(source).age_s or 0) < 60


@pytest.mark.parametrize("at_s", [-1e300, -5.0, 0.0, 1e300])
def test_an_impossible_time_is_no_longer_than_a_line(at_s: float) -> None:
    with listening(says(answer(exposition(at_s=at_s)))) as a, fleet(a) as source:
        host = only(source)
    assert host.state is HostState.OLD
    assert len(host.reason) < 80
    assert host.age_s is None or host.age_s < 1e11


# -- several addresses of one host


def test_two_addresses_of_one_host_are_shown_once_with_a_note() -> None:
    boot = {"boot_id": BOOT}
    with ExitStack() as stack:
        talk = says(lambda: answer(exposition("w", labels=boot)))
        a, b = (stack.enter_context(listening(talk)) for _ in range(2))
        source = stack.enter_context(fleet(a, b))
        s = source.snapshot()
        assert [h.key for h in s.hosts] == [str(a)]
        assert s.problems == (f"1 address is a host that is already in the list: {b} is {a}",)


def test_two_hosts_with_the_same_name_are_two() -> None:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                listening(says(lambda n=n: answer(exposition("w", labels={"boot_id": f"{n}" * 8}))))
            )
            for n in range(2)
        ]
        s = stack.enter_context(fleet(*servers)).snapshot()
        assert [h.key for h in s.hosts] == [str(one) for one in servers]
        assert s.problems == ()


def test_a_host_is_live_if_one_of_its_addresses_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_record, "AGAIN_MOST_S", 0.1)
    with ExitStack() as stack:
        talk = says(lambda: answer(exposition("w", labels={"boot_id": BOOT})))
        b = stack.enter_context(listening(talk))
        with listening(talk) as a:
            source = stack.enter_context(fleet(a, b))
            assert [h.key for h in source.snapshot().hosts] == [str(a)]
        wait_for(lambda: [h.key for h in source.snapshot().hosts] == [str(b)], "the other address")
        s = source.snapshot()
        assert states(s) == {"w": ("live", "")}
        assert s.problems == (f"1 address is a host that is already in the list: {a} is {b}",)
        stack.enter_context(listening(talk, port=a.port))
        wait_for(lambda: [h.key for h in source.snapshot().hosts] == [str(a)], "it is back")


def test_one_text_at_two_addresses_stays_with_the_one_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A simulated host, which has no boot of its own, is known again by the time of its text."""
    monkeypatch.setattr(exporter_record, "AGAIN_MOST_S", 0.1)
    with ExitStack() as stack:
        at_s = [time.time()]
        talk = says(lambda: answer(exposition("w", at_s[0])))
        b = stack.enter_context(listening(talk))
        with listening(talk) as a:
            source = stack.enter_context(fleet(a, b))
            assert [h.key for h in source.snapshot().hosts] == [str(a)]
        at_s[0] += 1
        wait_for(lambda: [h.key for h in source.snapshot().hosts] == [str(b)], "the other address")
        at_s[0] += 1
        assert states(source.snapshot()) == {"w": ("live", "")}


def test_a_stranger_that_claims_a_dead_host_does_not_take_its_place() -> None:
    text = [exposition("other", labels={"boot_id": "2" * 8})]
    own = says(lambda: answer(exposition("w", labels={"boot_id": BOOT})))
    with ExitStack() as stack:
        stranger = stack.enter_context(listening(says(lambda: answer(text[0]))))
        with listening(own) as a:
            source = stack.enter_context(fleet(stranger, a))
            assert states(source.snapshot()) == {"other": ("live", ""), "w": ("live", "")}
        wait_for(lambda: states(source.snapshot())["w"][0] != "live", "it is dead")
        text[0] = exposition("w", labels={"boot_id": BOOT})
        wait_for(lambda: source.snapshot().problems, "the claim")
        s = source.snapshot()
        assert [(h.key, str(h.state)) for h in s.hosts] == [
            (str(stranger), "live"),
            (str(a), "old"),
        ]
        pair = f"{stranger} and {a}"
        assert s.problems == (
            f"1 host may be in the list twice: only one of the addresses answers: {pair}",
        )


def test_of_two_that_claim_to_be_one_host_the_first_that_did_is_shown() -> None:
    text = [exposition("other", labels={"boot_id": "2" * 8})]
    own = says(lambda: answer(exposition("w", labels={"boot_id": BOOT})))
    with (
        listening(says(lambda: answer(text[0]))) as stranger,
        listening(own) as a,
        fleet(stranger, a) as source,
    ):
        assert len(source.snapshot().hosts) == 2
        text[0] = exposition("w", labels={"boot_id": BOOT})
        wait_for(lambda: [h.key for h in source.snapshot().hosts] == [str(a)], "the claim")


def test_numbers_without_a_time_are_old_as_they_are_with_prometheus() -> None:
    text = exposition("w", hbm_used_bytes=1.0)
    text = "".join(f"{one}\n" for one in text.splitlines() if "timestamp" not in one)
    with listening(says(answer(text))) as a, fleet(a) as source:
        for host in (only(source), source.details(only(source))):
            assert (host.state, host.age_s) == (HostState.OLD, None)
            assert host.reason == "it does not say of which time its numbers are"


# -- services


class Names:
    """A resolver whose answers a test decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: list[str] = []
        self.delay_s = 0.0
        self.ended = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self)
        monkeypatch.setattr(name_lookup, "KEPT_S", 0.1)
        monkeypatch.setattr(name_lookup, "FAILURE_KEPT_S", 0.1)

    def __call__(self, host: str, *_: object, **__: object) -> list[object]:
        self.ended.wait(self.delay_s)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, 1, 6, "", (one, 0)) for one in self.addresses]


@contextmanager
def pods(count: int) -> Iterator[list[Listening]]:
    """Exporters on one port of different addresses of this machine."""
    with ExitStack() as stack:
        first = stack.enter_context(listening(says(worker("pod-1")), "127.0.0.1"))
        yield [first] + [
            stack.enter_context(listening(says(worker(f"pod-{n}")), f"127.0.0.{n}", first.port))
            for n in range(2, count + 1)
        ]


def test_pods_of_a_service_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch)
    with pods(3) as servers, fleet(f"@workers.svc:{servers[0].port}") as source:
        names.addresses = ["127.0.0.2", "127.0.0.1"]
        assert [h.name for h in source.snapshot().hosts] == ["pod-1", "pod-2"]
        names.addresses = ["127.0.0.3", "127.0.0.2"]
        wait_for(
            lambda: [h.name for h in source.snapshot().hosts] == ["pod-2", "pod-3"], "the new pods"
        )
        names.addresses = []
        why = "the name workers.svc cannot be looked up: name or service not known"
        wait_for(lambda: source.snapshot().problems == (why,), "a problem")
        assert [h.name for h in source.snapshot().hosts] == ["pod-2", "pod-3"]


@with_a_short_limit
def test_a_name_that_is_not_answered_does_not_delay_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(monkeypatch)
    names.delay_s = 30.0
    monkeypatch.setattr(exporters_fleet, "FIRST_LOOK_S", 1.0)
    with listening(says(worker())) as a, fleet(a, "@slow.svc") as source:
        began_s = time.monotonic()
        s = source.snapshot()
        assert time.monotonic() - began_s < 15
        assert states(s) == {"worker-0": ("live", "")}
        assert s.problems == ("the lookup of the name slow.svc takes too long",)
    names.ended.set()


# -- one host, and its past


def test_details_have_every_metric_of_the_host() -> None:
    with listening(says(worker(hbm_used_bytes=1.0, hbm_peak_bytes=2.0))) as a, fleet(a) as source:
        host = only(source)
        assert "hbm_peak_bytes" not in host.devices[0].values
        full = source.details(host)
        assert full.devices[0].values["hbm_peak_bytes"] == 2.0
        assert (full.key, full.name, full.state) == (host.key, host.name, HostState.LIVE)
    with pytest.raises(FleetError, match=f"{a}: nothing listens there"):
        source.details(host)
    with pytest.raises(FleetError, match="no longer one of these exporters"):
        source.details(host._replace(key="elsewhere:1"))


def test_details_are_as_old_as_the_numbers_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_record, "UNCHANGED_AFTER_S", 0.3)
    with listening(says(answer(exposition(at_s=time.time())))) as a, fleet(a) as source:
        unchanged = "its numbers have not changed for "
        wait_for(lambda: only(source).reason.startswith(unchanged), "it is old")
        full = source.details(only(source))
        assert full.state is HostState.OLD
        assert full.reason.startswith(unchanged)


def test_the_past_of_a_host_is_the_means_that_were_seen() -> None:
    value = iter(range(1, 1000))
    with (
        listening(says(lambda: answer(exposition(hbm_used_bytes=next(value) * GIB)))) as a,
        fleet(a) as source,
    ):
        wait_for(lambda: only(source) and len(a.asked) > 4, "some looks")
        host = only(source)
        found = source.history(host, ["hbm_used_bytes", "idle_s"], 60.0, 2)
        assert found.keys() == {"hbm_used_bytes"}
        history = found["hbm_used_bytes"]
        assert (history.step_s, history.values[0]) == (30.0, None)
        assert 1 * GIB < (history.values[1] or 0) < len(a.asked) * GIB
        assert abs(history.first_s + history.step_s - time.time()) < 10
        assert source.history(host._replace(key="x"), ["hbm_used_bytes"], 60.0, 2) == {}


def test_there_is_a_limit_to_all_hosts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters_fleet, "ITEMS_OF_ALL_MOST", 2)
    with ExitStack() as stack:
        servers = [stack.enter_context(listening(says(worker(f"w{n}")))) for n in range(2)]
        found = states(stack.enter_context(fleet(*servers)).snapshot())
    assert sorted(found.values()) == [
        ("down", "there is no room for its 2 devices and processes"),
        ("live", ""),
    ]


def test_hosts_that_come_and_go_leave_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters_fleet, "ITEMS_OF_ALL_MOST", 2)
    monkeypatch.setattr(exporter_record, "DROPPED_AFTER_S", 0.0)
    monkeypatch.setattr(exporter_record, "AGAIN_MOST_S", 0.05)
    text = [answer(exposition())]
    with listening(says(lambda: text[0])) as a, fleet(a) as source:
        for _ in range(3):
            wait_for(lambda: only(source).state is HostState.LIVE, "it answers")
            text[0] = answer("", "500 Oh no")
            wait_for(lambda: only(source).state is HostState.DOWN, "its numbers are dropped")
            text[0] = answer(exposition())


def test_no_part_of_the_credentials_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://ann:s3cret-of-the-proxy@127.0.0.1:1")
    token = "t0ken" * 30
    (tmp_path / "http.yml").write_text(f"bearer_token: {token}")

    def repeats(connected: socket.socket, head: bytes) -> None:
        lines = head.decode().split("\r\n")
        sent = next(one for one in lines if one.lower().startswith("authorization"))
        connected.sendall(next(say)(sent))

    answers = (
        lambda sent: answer("", f"500 {sent}"),
        lambda sent: answer("", "302 Found", Location=f"http://x/{token}"),
        lambda sent: answer("x", Content_Encoding=token),
    )
    say = iter(answers)
    monkeypatch.setattr(exporter_record, "AGAIN_MOST_S", 0.0)
    with listening(repeats) as a:
        source = ExporterFleet(str(a), str(tmp_path / "http.yml"))
        with closing(source):
            reasons = []
            while len(a.asked) < len(answers):
                reasons.append(only(source).reason)
            wait_for(lambda: "compressed" in only(source).reason, "the last answer")
            reasons.append(only(source).reason)
    assert any("500" in reason for reason in reasons)
    assert not any("t0k" in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    ("addresses", "whom"),
    [
        ("10.0.0.9:1,127.0.0.1:1,w:1", "10.0.0.9:1 and 1 more"),
        ("@workers.example:1", "workers.example:1"),
        ("https://10.0.0.9:1,localhost:1", None),
    ],
)
def test_credentials_over_a_network_without_tls_bring_a_warning(
    tmp_path: Path, addresses: str, whom: str | None
) -> None:
    (tmp_path / "http.yml").write_text("bearer_token: secret-of-mine")
    (tmp_path / "http.yml").chmod(0o600)
    with closing(ExporterFleet(addresses, str(tmp_path / "http.yml"))) as source:
        sentence = f"the credentials of --http-config are sent to {whom} unencrypted"
        assert source._warnings == ((sentence,) if whom else ())
    assert ExporterFleet(addresses, None)._warnings == ()


def test_closing_ends_the_threads() -> None:
    def running() -> int:
        return sum(t.name == "tpusmi-exporter" for t in threading.enumerate())

    with listening(says(worker())) as a, fleet(a) as source:
        source.snapshot()
        assert running()
    wait_for(lambda: not running(), "the threads end")


def test_a_mistake_of_ours_costs_one_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = exporters_fleet.read

    def fails(exporter: Exporter, *more: Any) -> Any:
        if exporter.server.port == bad.port:
            raise KeyError("a mistake")
        return real(exporter, *more)

    monkeypatch.setattr(exporters_fleet, "read", fails)
    with (
        listening(says(worker())) as good,
        listening(says(worker())) as bad,
        fleet(good, bad) as source,
    ):
        found = states(source.snapshot())
    assert found["worker-0"] == ("live", "")
    assert found[str(bad)] == ("down", "its answer could not be read (KeyError)")


@pytest.mark.parametrize("wrong", ["", "a:b:c", "/no/such/file.txt"])
def test_addresses_that_cannot_be_used_are_the_same_error_as_any_other(wrong: str) -> None:
    with pytest.raises(FleetError):
        ExporterFleet(wrong, None)


def test_a_configuration_that_cannot_be_read_is_the_same_error(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"http\.yml"):
        ExporterFleet("worker-0", str(tmp_path / "http.yml"))


def test_exporters_have_no_past_and_say_where_there_is_one() -> None:
    source = ExporterFleet("127.0.0.1:1", None)
    one = source.snapshot().hosts[0]
    for ask in (
        lambda: source.snapshot(1.0),
        lambda: source.details(one, 1.0),
        lambda: source.history(one, ["hbm_used_bytes"], 600.0, 60, 1.0),
    ):
        with pytest.raises(FleetError, match="with --prometheus"):
            ask()
    assert "--prometheus" in source.no_past
    source.close()
