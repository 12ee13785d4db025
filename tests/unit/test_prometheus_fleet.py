"""The fleet from a Prometheus server: what is asked and shown, and servers that are slow, wrong or
hostile, each of which ends in a sentence without credentials.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
import traceback
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.clocks import takes_at_most
from support.prometheus_servers import (
    AnsweringServer,
    Question,
    Talk,
    answering,
    one,
    prometheus_like,
    send,
    vector,
)
from support.requirements import IPV6
from support.waits import with_a_short_limit

from tpusmi.fleet.fleet_figures import FleetSnapshot, HostState
from tpusmi.fleet.fleet_source import FleetError, FleetSource
from tpusmi.fleet.groups.fleet_groups import groups
from tpusmi.fleet.prometheus import (
    prometheus_answers,
    prometheus_api,
    prometheus_fleet,
    prometheus_look,
    prometheus_queries,
)
from tpusmi.fleet.prometheus.prometheus_api import prometheus_address
from tpusmi.fleet.prometheus.prometheus_fleet import PrometheusFleet

NOW_S = 2e9
"""Not the time of this computer: the server's clock counts."""
SECRET = "hunter2hunter2"
STAMP = "tpusmi_snapshot_timestamp_seconds"
USED = "tpusmi_hbm_used_bytes"
HOST = {"instance": "10.0.0.1:8781", "job": "tpusmi", "host": "vm-1", "slice": "pod-7"}
CHIP = {**HOST, "chip": "0", "device": "0"}
SERIES = {
    STAMP: [one(f"{NOW_S - 5}", **HOST)],
    USED: [one("3e9", **CHIP)],
    "tpusmi_tensorcore_utilization_ratio": [one("0.29", **CHIP)],
    "tpusmi_device_info": [one("1", **CHIP, coords="1,2,0", kind="TPU v5e")],
    "tpusmi_chip_info": [one("1", **HOST, chip="0", kind="TPU v5e")],
}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine has the time that it needs."""
    monkeypatch.setattr(prometheus_fleet, "HOST_S", 60.0)


def fleet(server: AnsweringServer, path: str = "", **more: Any) -> PrometheusFleet:
    how = {"timeout_s": 60.0, **more}
    return PrometheusFleet(f"http://127.0.0.1:{server.port}{path}", **how)


def snapshot_of(talk: Talk, **more: Any) -> FleetSnapshot:
    with answering(talk) as server:
        return fleet(server, **more).snapshot()


def refused(talk: Talk, **more: Any) -> str:
    """The sentence of a server that gives no answer, in which no secret is."""
    with pytest.raises(FleetError) as error:
        snapshot_of(talk, **more)
    whole = "".join(traceback.format_exception(error.value))
    assert SECRET not in whole
    text = str(error.value)
    assert text.isprintable()
    assert len(text) < 500
    return text.partition(": ")[2]


def answers_with(body: object, status: str = "200 OK", **headers: str) -> Talk:
    return lambda connection, question: send(connection, body, status, **headers)


# -- what is shown


def test_a_host_has_the_numbers_of_its_series_and_its_age_by_the_servers_clock() -> None:
    with answering(prometheus_like(SERIES, NOW_S)) as server:
        source: FleetSource = fleet(server)
        found = source.snapshot()
        source.close()
    assert (found.at_s, found.source, found.problems) == (NOW_S, f"127.0.0.1:{server.port}", ())
    (host,) = found.hosts
    assert (host.name, host.address, host.slice) == ("vm-1", "10.0.0.1:8781", "pod-7")
    assert (host.state, host.reason, host.age_s) == (HostState.LIVE, "", 5.0)
    (device,) = host.devices
    assert (device.coords, device.kind) == ((1, 2, 0), "TPU v5e")
    assert device.values == {"hbm_used_bytes": 3e9, "tensorcore_utilization_percent": 29.0}
    assert {q.parameters["time"] for q in server.questions[1:]} == {f"{NOW_S:.3f}"}


def test_labels_of_other_servers_and_a_missing_up_do_not_matter() -> None:
    """Thanos, Mimir and VictoriaMetrics add labels and members; some have no `up`."""
    more = {"cluster": "eu", "prometheus_replica": "b", "project_id": "p", "__name__": "x"}
    series = {
        name: [{**s, "metric": {**s["metric"], **more}} for s in some]
        for name, some in SERIES.items()
    }
    talk = prometheus_like(series, NOW_S, isPartial=True, stats={"seriesFetched": "1"}, x=[[{}]])
    found = snapshot_of(talk)
    assert [h.name for h in found.hosts] == ["vm-1"]
    assert found.problems == ("Prometheus notes: the answer is partial",)


def test_the_time_can_be_a_vector_as_victoriametrics_gives_it() -> None:
    whole = prometheus_like(SERIES, NOW_S)

    def talk(connection: socket.socket, question: Question) -> None:
        if question.series == "time()":
            send(connection, vector([one(f"{NOW_S}")]))
        else:
            whole(connection, question)

    assert snapshot_of(talk).at_s == NOW_S


def test_warnings_of_the_server_are_shown_once_and_clean() -> None:
    notes = {"warnings": ["a store\n is\x1b[31m down", "x" * 5000], "infos": ["no counter", 7]}
    found = snapshot_of(prometheus_like(SERIES, NOW_S, **notes))
    assert found.problems[0] == "Prometheus notes: a store  is [31m down"
    assert all(text.isprintable() and len(text) < 300 for text in found.problems)
    assert len(found.problems) == 3


def test_a_query_that_fails_costs_its_numbers_only() -> None:
    whole = prometheus_like(SERIES, NOW_S)

    def talk(connection: socket.socket, question: Question) -> None:
        if question.series in (USED, "tpusmi_idle_seconds"):
            error = {"status": "error", "errorType": "execution", "error": "too many\nsamples"}
            send(connection, error, "422 Unprocessable Entity")
        elif question.series == "tpusmi_chip_info":
            send(connection, b'{"status":"success","data":{"result":[{"metric":')
        else:
            whole(connection, question)

    found = snapshot_of(talk)
    assert found.hosts[0].devices[0].values == {"tensorcore_utilization_percent": 29.0}
    assert found.problems == (
        "tpusmi_hbm_used_bytes and 1 more cannot be read: "
        "it rejects the query (422): too many samples",
        f"tpusmi_chip_info cannot be read: {NOT_JSON}",
    )


@with_a_short_limit
def test_a_query_that_hangs_costs_the_rest_of_the_time() -> None:
    whole = prometheus_like(SERIES, NOW_S)

    def talk(connection: socket.socket, question: Question) -> None:
        if question.series == "tpusmi_chip_holders":
            server.pause(20)
        whole(connection, question)

    began_s = time.monotonic()
    with answering(talk) as server:
        found = fleet(server, timeout_s=1.0).snapshot()
    assert time.monotonic() - began_s < 10
    assert found.hosts[0].devices[0].values["hbm_used_bytes"] == 3e9
    assert found.problems == ("tpusmi_chip_holders cannot be read: it does not answer in time",)


# -- hosts that are down


def down(
    series: dict[str, Any],
    gone: list[Any],
    targets: list[Any],
    match: Any = (),
    last: dict[str, Any] = {},  # noqa: B006  # it is not changed
) -> Any:
    """The snapshot of a server with these series, last stamps of exporters that are gone, targets
    that are down, and last facts.
    """
    whole = prometheus_like(series, NOW_S)

    def talk(connection: socket.socket, question: Question) -> None:
        query = question.parameters["query"]
        if query.startswith(f"last_over_time({STAMP}"):
            send(connection, vector(gone))
        elif query.startswith("last_over_time("):
            name = query.removeprefix("last_over_time(").partition("{")[0]
            send(connection, vector(last.get(name, ())))
        elif query.startswith("up{"):
            send(connection, vector(targets))
        else:
            whole(connection, question)

    return snapshot_of(talk, match=match)


def states(found: FleetSnapshot) -> dict[str, tuple[str, str]]:
    return {host.name: (str(host.state), host.reason) for host in found.hosts}


def test_hosts_without_current_numbers_are_down_or_old() -> None:
    second = {**HOST, "instance": "10.0.0.2:8781", "host": "vm-2"}
    third = {**HOST, "instance": "10.0.0.3:8781", "host": "vm-3"}
    fourth = {**HOST, "instance": "10.0.0.4:8781", "host": "vm-4"}
    gone = [
        one(f"{NOW_S - 20}", **second),
        one(f"{NOW_S - 300}", **third),
        one(f"{NOW_S - 3000}", **fourth),
    ]
    targets = [
        one("0", instance="10.0.0.2:8781", job="tpusmi", __name__="up"),
        one("0", instance="10.0.0.9:8781", job="tpusmi", __name__="up"),
    ]
    last = {"tpusmi_device_info": [one("1", **second, chip="0", device="0", coords="0,0,0")]}
    found = down(SERIES, gone, targets, last=last)
    cannot = "Prometheus cannot scrape its exporter"
    assert states(found) == {
        "vm-1": ("live", ""),
        "vm-2": ("down", cannot),
        "vm-3": ("old", "Prometheus has had no numbers of it for 5m00s"),
        "10.0.0.9:8781": ("down", cannot),
    }
    assert [d.coords for d in found.hosts[1].devices] == [(0, 0, 0)]
    assert len({host.key for host in found.hosts}) == 4


def test_a_host_with_a_new_name_is_there_once_also_when_it_cannot_be_scraped() -> None:
    """A failed or changed scrape ends the old series at once: their time is of a moment ago."""
    new = {**HOST, "host": "vm-new"}
    boot = {"boot_id": "b"}
    info = "tpusmi_host_info"
    current = {STAMP: [one(f"{NOW_S - 2}", **new)], info: [one("1", **new, **boot)]}
    before = [one(f"{NOW_S - 20}", **HOST)]
    renamed = down(current, before, [], last={info: [one("1", **HOST, **boot)]})
    assert states(renamed) == {"vm-new": ("live", "")}

    both = [*before, one(f"{NOW_S - 5}", **new)]
    last = {info: [one("1", **HOST, **boot), one("1", **new, **boot)]}
    targets = [one("0", instance=HOST["instance"], job="tpusmi", __name__="up")]
    assert states(down({}, both, targets, last=last)) == {
        "vm-new": ("down", "Prometheus cannot scrape its exporter")
    }

    another = {info: [one("1", **HOST, boot_id="a")]}
    kept = states(down(current, before, [], last=another))
    assert [*kept] == ["vm-1", "vm-new"]


def test_a_host_that_is_down_is_still_one_of_its_job() -> None:
    first = {name: value for name, value in HOST.items() if name != "slice"}
    second = {**first, "instance": "10.0.0.2:8781", "host": "vm-2"}
    process = {"pid": "7", "job_name": "train.py"}
    of_job = {
        "tpusmi_process_info": {"user": "ann"},
        "tpusmi_slice_expected_processes": {"slice_job": "ab"},
    }
    facts = {**of_job, "tpusmi_device_info": {"chip": "0", "device": "0"}}
    now = {name: [one("1", **first, **process, **more)] for name, more in facts.items()}
    last = {name: [one("1", **second, **process, **more)] for name, more in facts.items()}
    targets = [one("0", instance="10.0.0.2:8781", job="tpusmi", __name__="up")]
    series = {STAMP: [one(f"{NOW_S - 5}", **first)], **now}
    found = down(series, [one(f"{NOW_S - 20}", **second)], targets, last=last)
    (job,) = groups(found, "job")
    assert (job.name, job.hosts, job.in_state(HostState.DOWN)) == ("train.py", 2, 1)


def test_a_host_that_is_back_under_another_address_is_there_once() -> None:
    old = {**HOST, "instance": "10.9.9.9:8781"}
    now = {"tpusmi_host_info": [one("1", **HOST, boot_id="b")]}
    last = {"tpusmi_host_info": [one("1", **old, boot_id="b")]}
    found = down({**SERIES, **now}, [one(f"{NOW_S - 40}", **old)], [], last=last)
    assert states(found) == {"vm-1": ("live", "")}


def test_a_target_that_is_down_in_one_cluster_is_not_that_of_another() -> None:
    """Both clusters call it 10.0.0.1:8781."""
    east = {**HOST, "cluster": "east"}
    series = {STAMP: [one(f"{NOW_S - 5}", **east)]}
    target = {"instance": HOST["instance"], "job": "tpusmi", "__name__": "up"}
    targets = [one("0", **target, cluster="west"), one("0", **target, cluster="north")]
    found = down(series, [], targets)
    states_of = sorted((host.name, str(host.state)) for host in found.hosts)
    assert states_of == [(HOST["instance"], "down"), (HOST["instance"], "down"), ("vm-1", "live")]
    assert len({host.key for host in found.hosts}) == 3
    gone = [one(f"{NOW_S - 20}", **{**HOST, "cluster": "west", "host": "vm-2"})]
    found = down(series, gone, targets[:1])
    assert {name: state for name, (state, _) in states(found).items()} == {
        "vm-1": "live",
        "vm-2": "down",
    }


def test_very_many_targets_of_one_address_are_not_all_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server may name thousands of hosts and targets that are down, all at one address."""
    monkeypatch.setattr(prometheus_look, "COMPARED_MOST", 4)
    compared = []
    monkeypatch.setattr(
        prometheus_look, "_is_target_of", lambda target, own: bool(compared.append(own))
    )
    stamps = [one(f"{NOW_S - 5}", **{**HOST, "host": f"vm-{n}"}) for n in range(9)]
    target = {"instance": HOST["instance"], "__name__": "up"}
    found = down({STAMP: stamps}, [], [one("0", **target, job=f"tpusmi{n}") for n in range(2)])
    assert len(compared) == 4
    assert [str(host.state) for host in found.hosts].count("live") == 9
    assert len(found.hosts) == 11


# -- what is asked


def test_every_query_about_an_earlier_time_takes_that_time() -> None:
    at_s = NOW_S - 60.0
    with answering(host_server(False)) as server:
        source = fleet(server, is_patient=False)
        then = source.snapshot(at_s)
        looked = [q.parameters for q in server.questions]
        assert {q["time"] for q in looked} == {f"{at_s:.3f}"}
        assert then.at_s == at_s
        assert any("ici_link_health" in q["query"] for q in looked)  # it is looked at once
        assert not then.is_partial
        source.details(then.hosts[0], at_s)
        assert server.questions[-1].parameters["time"] == f"{at_s:.3f}"
        source.history(then.hosts[0], ["hbm_used_bytes"], 600.0, 60, at_s)
        assert server.questions[-1].parameters["end"] == f"{at_s:.3f}"
        assert "time()" not in {q.parameters["query"] for q in server.questions}


def test_the_first_of_several_looks_says_that_it_is_partial() -> None:
    with answering(host_server(False)) as server:
        source = fleet(server, is_patient=False)
        first = source.snapshot()
        assert first.is_partial
        assert not any("ici_link_health" in q.parameters["query"] for q in server.questions)
        assert not source.snapshot().is_partial
        assert not fleet(server).snapshot().is_partial


def test_only_exporters_that_are_gone_are_asked_for_their_last_facts() -> None:
    with answering(prometheus_like(SERIES, NOW_S)) as server:
        fleet(server).snapshot()
    last = [q.parameters["query"] for q in server.questions if "last_over_time" in str(q)]
    assert last
    assert all(STAMP in query for query in last)
    last = [*prometheus_queries.of_gone({"10.0.0.1:8781", "a|b"}, ()).values()]
    named = r'instance=~"10\\.0\\.0\\.1:8781|a\\|b"'
    unless = f"unless on (job, instance, host) {STAMP}{{{named}}}"
    assert f"last_over_time(tpusmi_device_info{{{named}}}[15m]) {unless}" in last


def test_very_many_exporters_that_are_gone_are_not_named() -> None:
    many = {f"tpu-vm-{n}.c.project.internal:8781" for n in range(5000)}
    queries = prometheus_queries.of_gone(many, ())
    assert queries
    for query in queries.values():
        assert len(query) < 300
        assert "unless on (job, instance, host)" in query


def test_chips_whose_holders_are_known_are_not_asked_for_again() -> None:
    query = prometheus_queries.of_fleet(())["tpusmi_chip_info"]
    assert query.startswith("tpusmi_chip_info unless ignoring (generation, kind, pci_address")
    assert query.endswith("tpusmi_chip_holders")
    holders = [one("0", **HOST, chip="0"), one("1", **HOST, chip="1")]
    series = {STAMP: SERIES[STAMP], "tpusmi_chip_holders": holders}
    (host,) = snapshot_of(prometheus_like(series, NOW_S)).hosts
    assert (host.chips, host.held_chips) == (2, 1)


def test_matchers_are_in_each_query_of_series() -> None:
    with answering(prometheus_like({}, NOW_S)) as server:
        source = fleet(server, match=['slice="po\\"d"', "job=~t.*"])
        found = source.snapshot()
    queries = [question.parameters["query"] for question in server.questions[1:]]
    assert len(queries) > 20
    assert all('{slice="po\\"d",job=~"t.*"}' in query for query in queries)
    assert found.problems == ('it has no hosts with {slice="po\\"d",job=~"t.*"}: see --match',)


def test_a_server_without_tpusmi_gets_advice() -> None:
    found = snapshot_of(prometheus_like({}, NOW_S))
    assert found.hosts == ()
    assert found.problems == (
        "it has no numbers of tpusmi: does it scrape `tpusmi serve`? See docs/serve.md",
    )


@pytest.mark.parametrize(
    ("url", "text", "prefix"),
    [
        ("host:9090", "host:9090", ""),
        ("host", "host:9090", ""),
        ("http://host", "host:80", ""),
        ("https://host/prometheus/", "https://host:443/prometheus", "/prometheus"),
        ("http://host:1/graph?g0.expr=up", "host:1", ""),
        ("http://host:1/a/api/v1/query?query=up", "host:1/a", "/a"),
        ("http://host:1/query", "host:1", ""),
        ("[::1]:9090", "[::1]:9090", ""),
        ("http://[2001:db8::1]", "[2001:db8::1]:80", ""),
        (
            "https://monitoring.googleapis.com/v1/projects/p/location/global/prometheus",
            "https://monitoring.googleapis.com:443/v1/projects/p/location/global/prometheus",
            "/v1/projects/p/location/global/prometheus",
        ),
        (" http://vm:8481/select/0/prometheus ", "vm:8481/select/0/prometheus", None),
    ],
)
def test_addresses_as_people_write_them(url: str, text: str, prefix: str | None) -> None:
    found = prometheus_address(url)
    assert str(found) == text
    assert prefix is None or found.prefix == prefix


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (f"http://ann:{SECRET}@host:9090", "host:9090: put the user and the password in a file"),
        (f"ann:{SECRET}@host:9090", "put the user and the password in a file for --http-config"),
        (f"http://ann:{SECRET}?x@host:9090", "put the user and the password in a file"),
        (f"http://host:1/?token={SECRET}", "leave out what follows the question mark"),
        ("ftp://host", "is not a URL such as http://host:9090"),
        ("http://", "is not a URL such as http://host:9090"),
        ("http://host:99999", "is not a URL"),
        ("http://ho st:1", "is not a URL"),
        ("http://host:1/\r\nX: y", "is not a URL"),
        ("", "is not a URL"),
        ("http://" + "x" * 9000, "is not a URL"),
    ],
)
def test_other_addresses_are_refused_in_a_sentence(url: str, why: str) -> None:
    with pytest.raises(FleetError) as error:
        PrometheusFleet(url)
    assert why in str(error.value)
    assert SECRET not in "".join(traceback.format_exception(error.value))
    assert str(error.value).isprintable()


@IPV6
def test_a_server_with_an_ipv6_address_is_asked() -> None:
    with answering(prometheus_like(SERIES, NOW_S), address="::1") as server:
        found = PrometheusFleet(f"[::1]:{server.port}").snapshot()
    assert [host.name for host in found.hosts] == ["vm-1"]


def test_a_path_is_put_before_the_api() -> None:
    with answering(prometheus_like(SERIES, NOW_S)) as server:
        source = fleet(server, "/prometheus/")
        source.snapshot()
    assert {q.path for q in server.questions} == {"/prometheus/api/v1/query"}
    assert source.label == f"127.0.0.1:{server.port}/prometheus"


# -- credentials


def config(directory: Path, text: str) -> str:
    path = directory / "http.yml"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_credentials_are_sent_and_shown_nowhere(tmp_path: Path) -> None:
    path = config(tmp_path, f"basic_auth: {{username: ann, password: {SECRET}}}")
    with answering(prometheus_like(SERIES, NOW_S)) as server:
        source = fleet(server, http_config=path)
        found = source.snapshot()
    heads = [question.head for question in server.questions]
    assert all("Authorization: Basic YW5uOmh1bnRlcjJodW50ZXIy" in head for head in heads)
    shown = f"{found} {source!r} {source.label} {source.warnings}"
    assert SECRET not in shown
    assert "YW5u" not in shown


def test_a_server_that_repeats_the_credentials_does_not_get_them_shown(tmp_path: Path) -> None:
    path = config(tmp_path, f"basic_auth: {{username: ann, password: {SECRET}}}")

    def talk(connection: socket.socket, question: Question) -> None:
        send(connection, f"you sent {SECRET} as {question.head}".encode(), "418 A teapot")

    text = refused(talk, http_config=path)
    assert "status 418" in text
    assert "YW5u" not in text


@pytest.mark.parametrize("place", [180, 190, 195, 199])
def test_no_part_of_the_credentials_is_shown_where_a_text_is_cut(
    tmp_path: Path, place: int
) -> None:
    path = config(tmp_path, f"bearer_token: {SECRET}")
    error = {"status": "error", "error": f"{'x' * place}{SECRET}{'y' * 9000}"}
    assert "hunt" not in refused(answers_with(error, "400 No"), http_config=path)
    assert "hunt" not in refused(answers_with(error), http_config=path)
    body = error["error"].encode()
    assert "hunt" not in refused(answers_with(body, "500 No"), http_config=path)
    notes = snapshot_of(prometheus_like(SERIES, NOW_S, warnings=[error["error"]]), http_config=path)
    assert "hunt" not in f"{notes.problems}"


def test_credentials_over_a_network_without_tls_bring_a_warning(tmp_path: Path) -> None:
    path = config(tmp_path, f"bearer_token: {SECRET}")
    sentence = "the credentials of --http-config are sent to prom.example:9090 unencrypted"
    assert PrometheusFleet("prom.example:9090", (), path).warnings == (sentence,)
    assert PrometheusFleet("https://prom.example", (), path).warnings == ()
    assert PrometheusFleet("localhost:9090", (), path).warnings == ()
    Path(path).chmod(0o644)
    found = snapshot_of(prometheus_like(SERIES, NOW_S), http_config=path)
    assert found.problems == (f"all users of this machine can read {path}: chmod 600 {path}",)


def test_a_wrong_configuration_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = config(tmp_path, f"oauth2: {{client_secret: {SECRET}}}")
    with pytest.raises(FleetError, match="'oauth2' is not a key that tpusmi supports"):
        PrometheusFleet("localhost", (), path)
    with pytest.raises(FleetError, match="is not a matcher"):
        PrometheusFleet("localhost", ["x"])


def test_a_proxy_of_the_environment_is_asked_for_another_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = config(tmp_path, "proxy_from_environment: true")
    with answering(prometheus_like(SERIES, NOW_S)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://ann:{SECRET}@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        found = PrometheusFleet("prometheus.invalid:9090", (), path).snapshot()
        monkeypatch.setenv("no_proxy", ".invalid")
        with pytest.raises(FleetError) as refusal:
            PrometheusFleet("prometheus.invalid:9090", (), path, timeout_s=2.0).snapshot()
    assert [host.name for host in found.hosts] == ["vm-1"]
    head = proxy.questions[0].head
    assert head.startswith("GET http://prometheus.invalid:9090/api/v1/query?query=time%28%29")
    assert "Proxy-Authorization: Basic YW5uOmh1bnRlcjJodW50ZXIy" in head
    assert SECRET not in f"{found} {refusal.value}"


# -- refusals


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        ("401 Unauthorized", b"Unauthorized", "it wants a password or a token: see --http-config"),
        ("403 Forbidden", b"no", "it does not allow the query"),
        ("404 Not Found", b"404 page not found", "it has no Prometheus API there (404): a path"),
        ("429 Too Many Requests", b"", "it gets too many requests (429): ask less often"),
        ("502 Bad Gateway", b"<html>", "the gateway in front of it does not reach it (502)"),
        ("503 Service Unavailable", b"Service Unavailable", "it is not ready, or has too much"),
        ("504 Gateway Timeout", b"", "does not get its answer in time (504)"),
        ("500 Oops", b"\x1b[31mboom", "it answers with status 500 (Oops): [31mboom"),
        (
            "400 Bad Request",
            b'{"status":"error","errorType":"bad_data","error":"unknown function\\n x"}',
            "it rejects the query (400): unknown function  x",
        ),
        ("503 No", b'{"status":"error","error":"query timed out"}', "too much to do (503): query"),
        ("400 Bad Request", b'{"status":"error","error":{"a":1}}', "it rejects the query (400)"),
    ],
)
def test_each_refusal_has_its_sentence(status: str, body: bytes, why: str) -> None:
    assert why in refused(answers_with(body, status))


def test_wrong_credentials_have_a_sentence_of_their_own(tmp_path: Path) -> None:
    path = config(tmp_path, f"bearer_token: {SECRET}")
    text = refused(answers_with(SECRET.encode(), "401 Unauthorized"), http_config=path)
    assert text == "it does not accept the credentials of --http-config (401)"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 T", "308 P"])
def test_a_redirect_is_named_and_not_followed(status: str, tmp_path: Path) -> None:
    path = config(tmp_path, f"bearer_token: {SECRET}")
    with answering(prometheus_like(SERIES, NOW_S)) as other:
        to = f"http://ann:{SECRET}@127.0.0.1:{other.port}/login?next={SECRET}"
        text = refused(answers_with(b"", status, Location=to), http_config=path)
    assert text == f"it redirects to 127.0.0.1:{other.port}/login, which is not followed"
    assert other.questions == []


def test_a_login_page_is_called_one() -> None:
    page = b"<!DOCTYPE html><html><form>password</form></html>"
    for kind in ("text/html; charset=utf-8", "application/json"):
        text = refused(answers_with(page, Content_Type=kind))
        assert "it answers with a web page: a login may be in front of it" in text


# -- hostile answers


def raw(data: bytes, repeat: bytes = b"", every_s: float = 0.0) -> Talk:
    def talk(connection: socket.socket, question: Question) -> None:
        connection.sendall(data)
        until_s = time.monotonic() + 20
        while repeat and time.monotonic() < until_s:
            connection.sendall(repeat)
            time.sleep(every_s)

    return talk


def reset(connection: socket.socket, question: Question) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
NOT_JSON = "its answer is not the JSON of Prometheus"


@pytest.mark.parametrize(
    ("talk", "why"),
    [
        (raw(HEAD, b" " * 65536), ("its answer is", "in time")),
        (raw(HEAD, b" ", 0.05), ("it does not answer in time",)),
        (raw(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05), ("it does not answer in time",)),
        (raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 20)), ("its answer is",)),
        (raw(b"SSH-2.0-OpenSSH\r\n"), ("it does not speak HTTP",)),
        (raw(b""), ("it closes the connection without an answer",)),
        (reset, ("it closes the connection without an answer",)),
        (raw(HEAD + b'{"status":'), (NOT_JSON,)),
        (answers_with(b'{"a":' * 100_000), (NOT_JSON,)),
        (answers_with(b"[" * 1_000_000), (NOT_JSON,)),
        (answers_with(b'{"data":{"result":' + b"[" * 1_000_000), (NOT_JSON,)),
        (answers_with(b"\xff\xfe{}"), (NOT_JSON,)),
        (answers_with(b"1" * 100_000), (NOT_JSON,)),
        (answers_with([1]), (NOT_JSON,)),
        (answers_with({}), ("it cannot answer: it does not say why",)),
        (answers_with({"status": "success", "data": None}), ("is not a time",)),
        (answers_with({"status": "success", "data": {"result": [1, "NaN"]}}), ("not a time",)),
        (answers_with({"status": "success", "data": {"result": [1, "-5"]}}), ("not a time",)),
        (answers_with({"status": "success", "data": {"result": [1, 5]}}), ("not a time",)),
        (answers_with({"status": "error", "error": "\x1b[1m" + "x" * 9999}), ("answer: [1mx",)),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, tuple) else "",
)  # fmt: skip
@with_a_short_limit
def test_a_server_that_is_none_ends_in_a_sentence_in_time(talk: Talk, why: tuple[str, ...]) -> None:
    began_s = time.monotonic()
    text = refused(talk, timeout_s=1.0)
    assert time.monotonic() - began_s < 10
    assert any(one in text for one in why), text


def after_time(talk: Talk) -> Talk:
    """A server that has the time, and then hostile answers."""
    honest = prometheus_like({}, NOW_S)

    def both(connection: socket.socket, question: Question) -> None:
        (honest if question.parameters.get("query") == "time()" else talk)(connection, question)

    return both


def test_a_gzip_bomb_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_api, "ANSWER_BYTES", 1 << 20)
    bomb = gzip.compress(b" " * (1 << 25), 1)
    tracemalloc.start()
    text = refused(after_time(answers_with(bomb, Content_Encoding="gzip")))
    assert "its answer is longer than" in text
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_a_series_that_is_too_long_costs_only_itself_and_says_what_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus_api, "ANSWER_BYTES", 1 << 20)
    long = [one("1", **CHIP, kind="y" * 1000, n=str(n)) for n in range(2000)]
    found = snapshot_of(prometheus_like({**SERIES, "tpusmi_device_info": long}, NOW_S))
    assert found.hosts[0].devices[0].values["hbm_used_bytes"] == 3e9
    why = "its answer is longer than 1 MiB: use --match"
    assert found.problems == (f"tpusmi_device_info cannot be read: {why}",)


WRONG = [
    None, 7, "x", [], [1], {}, {"metric": None, "value": [1, "1"]}, {"metric": {}, "value": "11"},
    {"metric": [], "value": [1, "1"]}, {"metric": {"a": 1}, "value": [1, "1"]},
    {"metric": {"a": {"b": []}}, "value": [1, "1"]}, {"metric": dict(HOST), "value": [1]},
    {"metric": dict(HOST), "value": [1, 5]}, {"metric": dict(HOST), "value": [1, None]},
    {"metric": dict(HOST), "value": [1, "five"]}, {"metric": dict(HOST), "histogram": [1, {}]},
    {"metric": {f"l{n}": "" for n in range(100)}, "value": [1, "1"]},
    {"metric": dict(HOST), "value": [1, "1" * 5000]},
]  # fmt: skip


def test_series_of_wrong_types_are_left_out_and_counted() -> None:
    series = {name: [*WRONG, *some] for name, some in SERIES.items()}
    found = snapshot_of(prometheus_like(series, NOW_S))
    assert [h.name for h in found.hosts][:1] == ["vm-1"]
    assert found.hosts[0].devices[0].values["hbm_used_bytes"] == 3e9
    assert "series of a wrong type are left out" in found.problems[0]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999", "-1"])
def test_numbers_that_cannot_be_are_unknown_and_not_0(value: str) -> None:
    series = {**SERIES, USED: [one(value, **CHIP)]}
    found = snapshot_of(prometheus_like(series, NOW_S))
    assert "hbm_used_bytes" not in found.hosts[0].devices[0].values


def test_labels_with_escapes_and_controls_are_clean_texts() -> None:
    evil = 'a"b\\n\n\x1b]0;x\x07\u202e},{"metric":{'
    labels = {**HOST, "host": evil}
    series = {
        STAMP: [one(f"{NOW_S}", **labels)] * 50,
        USED: [one("1", **labels, chip="0", device="0")] * 50,
    }
    (host,) = snapshot_of(prometheus_like(series, NOW_S)).hosts
    assert host.name.isprintable()
    assert host.name.startswith('a"b\\n')
    assert host.devices[0].values == {"hbm_used_bytes": 1}


def test_more_samples_than_fit_are_read_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_look, "SAMPLES_MOST", 18_000)
    sample = json.dumps(one("1", **CHIP)).encode()
    body = b'{"status":"success","data":{"result":[' + b",".join([sample] * 8_000) + b"]}}"
    tracemalloc.start()
    found = snapshot_of(after_time(answers_with(body)))
    assert tracemalloc.get_traced_memory()[1] < 7 * len(body) + (16 << 20)
    tracemalloc.stop()
    assert "only 18,000 samples are read: use --match" in found.problems
    assert len(found.hosts) == 1


def test_an_element_that_is_too_long_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_answers, "ELEMENT_CHARACTERS", 1 << 14)
    labels = {f"l{n}": "x" * 100 for n in range(600)}
    body = json.dumps(vector([{"metric": labels, "value": [1, "1"]}] * 3)).encode()
    assert len(body) > 2 * prometheus_answers.ELEMENT_CHARACTERS
    assert NOT_JSON in refused(after_time(answers_with(body)))


def test_an_answer_is_the_same_however_it_is_written() -> None:
    body = vector([one(str(n), **CHIP, n='},{"metric"' + str(n)) for n in range(3000)])
    compact = json.dumps(body, separators=(",", ":")).encode()
    spaced = json.dumps(body, indent=3).encode()
    reads = [[*prometheus_answers.QueryAnswer(data).samples("a")] for data in (compact, spaced)]
    assert len(reads[0]) == 3000
    assert reads[0] == reads[1]
    assert [sample.value for sample in reads[0]] == [*range(3000)]


RESULT = b'{"status":"success","data":{"result":['


@pytest.mark.parametrize(
    "inside",
    [
        b",".join([b'{"a":[{},{"metric":1}]}'] * 5_000),
        b",".join([b"1"] * 50_000),
        b" " * 2_000_000,
    ],
    ids=["objects in objects", "numbers", "spaces"],
)
def test_no_answer_takes_long_to_read_for_its_length(inside: bytes) -> None:
    answer = prometheus_answers.QueryAnswer(RESULT + inside + b"]}}")
    with takes_at_most(2.0):
        assert [*answer.samples("a")] == []


def test_an_answer_is_not_read_for_longer_than_it_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus_api, "READING_S", -100.0)
    text = refused(answers_with(RESULT + b",".join([b"1"] * 9) + b"]}}"))
    assert "its answer takes too long to read" in text


# -- one host


def whole_host(expression: str) -> list[dict[str, Any]]:
    names = {**SERIES, "tpusmi_hbm_peak_bytes": [one("4e9", **CHIP)]}
    return [
        {**s, "metric": {**s["metric"], "__name__": name}}
        for name, some in names.items()
        for s in some
    ]


def host_server(rejects_patterns: bool) -> Talk:
    series = {**SERIES, "tpusmi_hbm_peak_bytes": [one("4e9", **CHIP)]}
    whole = prometheus_like(series, NOW_S)

    def talk(connection: socket.socket, question: Question) -> None:
        query = question.parameters["query"]
        if not query.startswith("{__name__"):
            whole(connection, question)
        elif rejects_patterns:
            send(connection, {"status": "error", "error": "a name is needed"}, "400 Bad Request")
        else:
            send(connection, vector(whole_host(query)))

    return talk


@pytest.mark.parametrize("rejects_patterns", [False, True])
def test_details_have_every_metric_also_where_patterns_are_rejected(rejects_patterns: bool) -> None:
    with answering(host_server(rejects_patterns)) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        before = len(server.questions)
        details = source.details(host)
    assert details.key == host.key
    assert details.devices[0].values["hbm_peak_bytes"] == 4e9
    asked = server.questions[before].parameters["query"]
    for name, value in HOST.items():
        assert f'{name}="{value}"' in asked


@pytest.mark.parametrize("rejects_patterns", [False, True])
def test_details_that_are_no_answer_end_in_a_sentence(rejects_patterns: bool) -> None:
    honest = host_server(rejects_patterns)

    def talk(connection: socket.socket, question: Question) -> None:
        query = question.parameters["query"]
        which = "tpusmi_chip_info" if rejects_patterns else "{__name__"
        if is_broken and query.startswith(which):
            send(connection, b'{"status":')
        else:
            honest(connection, question)

    is_broken = False
    with answering(talk) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        is_broken = True
        with pytest.raises(FleetError, match=NOT_JSON):
            source.details(host)


def test_details_are_of_now_although_the_clock_here_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering(host_server(False)) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - 1e6)
        assert source.details(host).state is HostState.LIVE
    asked_s = float(server.questions[-1].parameters["time"])
    assert asked_s == pytest.approx(NOW_S, abs=30)


def test_details_of_a_host_that_has_gone_are_the_last_known_ones() -> None:
    with answering(prometheus_like(SERIES, NOW_S)) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        server.answers = prometheus_like({}, NOW_S)
        details = source.details(host)
    assert details.devices == host.devices
    assert (details.state, details.reason) == (
        HostState.OLD, "Prometheus has no current numbers of it",
    )  # fmt: skip


def test_a_host_name_cannot_end_the_query() -> None:
    evil = {**HOST, "host": 'x"} or {__name__=~".+'}
    series = {STAMP: [one(f"{NOW_S}", **evil)]}
    with answering(prometheus_like(series, NOW_S)) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        source.details(host)
        source.history(host, ["hbm_used_bytes"], 60, 10)
    for question in server.questions[-2:]:
        assert 'host="x\\"} or {__name__=~\\".+"' in question.parameters["query"]


# -- history


def ranges(values: Callable[[float, float], list[Any]], **more: Any) -> Talk:
    whole = prometheus_like(SERIES, NOW_S)

    def talk(connection: socket.socket, question: Question) -> None:
        if not question.path.endswith("query_range"):
            whole(connection, question)
            return
        times = [float(question.parameters[name]) for name in ("start", "step")]
        series = {"metric": {}, "values": values(*times)}
        data = {"resultType": "matrix", "result": [series, {"metric": {}, "values": [[1, "1"]]}]}
        send(connection, {"status": "success", "data": data, **more})

    return talk


def test_history_is_on_whole_steps_with_holes_where_there_is_nothing() -> None:
    def values(start: float, step: float) -> list[Any]:
        return [
            [start, "0.29"], [start + step, "NaN"], [start + 3 * step, "1"], [start - 9e9, "1"],
            [start + 9e9, "1"], [None, "1"], [start], 7, [start, "x"], [1e400, "1"],
        ]  # fmt: skip

    with answering(ranges(values)) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        metrics = ["duty_cycle_percent", "nonsense", "duty_cycle_percent"]
        found = source.history(host, metrics, 600, 100)
    assert [*found] == ["duty_cycle_percent"]
    (one_history,) = found.values()
    assert one_history.step_s == 10
    assert one_history.first_s % 10 == 0
    assert len(one_history.values) == 60
    assert one_history.values[:4] == (29.0, None, None, 100.0)
    assert set(one_history.values[4:]) == {None}
    last_s = one_history.first_s + 59 * 10
    assert NOW_S - 15 < last_s <= NOW_S + 2
    question = server.questions[-1]
    assert question.parameters["query"].startswith('avg(tpusmi_duty_cycle_ratio{instance="10.0.0.1')
    assert " or avg(tpusmi_chip_duty_cycle_ratio{" in question.parameters["query"]


@pytest.mark.parametrize(
    ("span_s", "points"), [(60, 10), (1, 5000), (1e12, 10**9), (0, 0), (-5, -5), (86400 * 90, 300)]
)
def test_no_more_points_are_asked_for_than_fit(span_s: float, points: int) -> None:
    with answering(ranges(lambda start, step: [[start, "1"]])) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        found = source.history(host, ["duty_cycle_percent"], span_s, points)
    asked = server.questions[-1].parameters
    start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
    assert step >= 1
    assert (end - start) / step + 1 <= max(1, min(points, 2000))
    assert len(found["duty_cycle_percent"].values) == round((end - start) / step) + 1


def test_a_metric_whose_query_fails_is_left_out_of_the_history() -> None:
    honest = ranges(lambda start, step: [[start, "1"]])

    def talk(connection: socket.socket, question: Question) -> None:
        if "idle" in question.parameters["query"] and question.path.endswith("range"):
            send(connection, b"", "503 No")
        else:
            honest(connection, question)

    with answering(talk) as server:
        source = fleet(server)
        (host,) = source.snapshot().hosts
        found = source.history(host, ["idle_s", "duty_cycle_percent", "steps"], 60, 6)
        assert sorted(found) == ["duty_cycle_percent", "steps"]
        with pytest.raises(FleetError, match="it is not ready"):
            source.history(host, ["idle_s"], 60, 6)


def test_no_thread_is_left_after_a_snapshot() -> None:
    before = threading.active_count()
    with answering(prometheus_like(SERIES, NOW_S)) as server:
        fleet(server).snapshot()
    until_s = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < until_s:
        time.sleep(0.01)
    assert threading.active_count() <= before
