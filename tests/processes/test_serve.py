"""`tpusmi serve` for real: a scrape by promtool and by Prometheus, hostile clients, its end."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from support.clocks import Stopwatch
from support.commands import TPUSMI, environment, tpusmi
from support.requirements import needs
from support.scrapers import LIMIT_S, Exporting, exporting, get, job, prometheus
from support.simulated_hosts import set_faults
from support.waits import until

from tpusmi.model import CHIP_METRICS, DEVICE_METRICS, PROCESS_METRICS, Host
from tpusmi.model.series_names import SERIES
from tpusmi.simulate.host import HostPlan, start

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
CLOCKS = ("since_last_step_s",)
"""Metrics that a host whose numbers do not change still has to count on."""


@pytest.fixture(scope="module")
def exporter(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporting]:
    directory = tmp_path_factory.mktemp("exporter")
    with exporting(directory, "--simulate", host.root, "--slice", "pod-7") as found:
        found.wait_until_ready()
        until(lambda: "tpusmi_process_steps_total" in get(found.url).text, LIMIT_S, "steps")
        yield found


def checked(text: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, timeout=LIMIT_S
    )


# -- a scrape


@needs("promtool")
def test_promtool_has_nothing_to_say_about_a_scrape(exporter: Exporting) -> None:
    answer = get(exporter.url)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    done = checked(answer.body)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_scrape_in_openmetrics_is_whole(exporter: Exporting) -> None:
    answer = get(exporter.url, Accept=OPENMETRICS)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("\n# EOF\n")
    families = list(text_string_to_metric_families(answer.text))
    assert {f.type for f in families} == {"gauge", "counter", "info"}


def test_a_scrape_can_be_compressed(exporter: Exporting) -> None:
    answer = get(exporter.url, Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.body).startswith(b"# HELP tpusmi_")
    assert len(answer.body) * 4 < len(get(exporter.url).body)


def test_every_series_says_that_it_is_simulated_and_of_which_slice(exporter: Exporting) -> None:
    lines = [line for line in get(exporter.url).text.splitlines() if not line.startswith("#")]
    assert len(lines) > 100
    for line in lines:
        assert 'simulated="true"' in line
        assert 'slice="pod-7"' in line
        assert f'host="{os.uname().nodename}"' in line


def test_it_has_a_page_with_a_link_and_says_how_it_is(exporter: Exporting) -> None:
    page = get(f"{exporter.base}/")
    assert '<a href="metrics">' in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert get(f"{exporter.base}/-/healthy").text == "tpusmi is healthy\n"
    assert get(f"{exporter.base}/-/ready").text == "tpusmi is ready\n"
    assert get(f"{exporter.base}/nowhere").status == 404
    assert get(exporter.url, method="POST").status == 405
    assert get(exporter.url, method="HEAD").body == b""


def whole(text: str) -> str:
    """The scrape, unless a source is late: on a busy machine one may be."""
    return "" if re.search(r"^tpusmi_source_up\{.*\} 0\.0$", text, re.MULTILINE) else text


def test_the_age_and_the_health_of_each_source_are_there(exporter: Exporting) -> None:
    text = until(lambda: whole(get(exporter.url).text), LIMIT_S, "an answer of each source")
    for source in ("agent", "sysfs", "holders", "libtpu", "libtpu_sdk"):
        (up,) = [
            x for x in text.splitlines() if x.startswith("tpusmi_source_up{") and f'"{source}"' in x
        ]
        assert up.endswith(" 1.0")
        (age,) = [
            x for x in text.splitlines()
            if x.startswith("tpusmi_source_age_seconds{") and f'"{source}"' in x
        ]  # fmt: skip
        assert 0 <= float(age.rpartition(" ")[2]) < 30


def test_a_host_can_have_another_name_and_no_processes(tmp_path: Path, host: Host) -> None:
    words = ("--simulate", host.root, "--host-name", "node-1", "--no-processes")
    with exporting(tmp_path, *words) as found:
        found.wait_until_ready()
        text = get(found.url).text
    assert 'tpusmi_chip_info{chip="0",' in text
    assert "tpusmi_process_" not in text
    assert "user=" not in text
    assert "command=" not in text
    assert 'job_name="' in text
    hosts = {*re.findall(r'host="(.*?)"', text)}
    assert hosts == {"node-1"}


def test_nothing_of_a_whole_host_is_left_out(exporter: Exporting) -> None:
    left = re.findall(r'^tpusmi_left_out\{.*what="(.*?)"\} (.*)$', get(exporter.url).text, re.M)
    assert dict(left) == dict.fromkeys(
        ("chips", "devices", "network distributions", "processes", "samples"), "0.0"
    )


# -- a real Prometheus


def exported_of(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels and value of every measured value in the JSON that is not old."""
    for kind, metrics in (
        ("chips", CHIP_METRICS), ("devices", DEVICE_METRICS), ("processes", PROCESS_METRICS),
    ):  # fmt: skip
        for item in whole[kind]:
            labels = {
                "chips": lambda x: {"chip": str(x["index"])},
                "devices": lambda x: {"chip": str(x["chip"]), "device": str(x["index"])},
                "processes": lambda x: {"pid": str(x["pid"])},
            }[kind](item)
            for m in metrics:
                name, _, part = m.name.partition(".")
                value = item[name][part] if part else item[name]
                if value is None or item["provenance"][name]["stale"] or name in CLOCKS:
                    continue
                yield SERIES[m].name, labels, SERIES[m].converted(value)


@needs("prometheus")
def test_prometheus_gets_the_values_of_the_json(
    exporter: Exporting, host: Host, tmp_path: Path
) -> None:
    whole = json.loads(tpusmi(tmp_path, "--json", "--simulate", host.root).stdout)
    expected = list(exported_of(whole))
    assert len(expected) > 60
    with prometheus(tmp_path / "prometheus", [job(f"127.0.0.1:{exporter.port}")]) as server:
        server.wait_until("tpusmi_process_steps_total")
        stored = server.query('{__name__=~"tpusmi_.+"}')
        assert server.query("up") == [
            ({"__name__": "up", "instance": f"127.0.0.1:{exporter.port}", "job": "tpusmi"}, 1.0)
        ]
        assert {error for _, error in server.targets().values()} == {""}
        metadata = server.api("metadata")
    for name, labels, value in expected:
        fits = [v for m, v in stored if m["__name__"] == name and labels.items() <= m.items()]
        assert len(fits) == 1, (name, labels)
        assert fits[0] == pytest.approx(value, rel=1e-6, abs=1e-9), (name, labels)
    assert metadata["tpusmi_hbm_used_bytes"][0]["type"] == "gauge"
    assert {m["__name__"] for m, _ in stored if "exported_job" in m} == set()


# -- what a scrape costs


def test_scrapes_at_the_same_time_are_made_once(exporter: Exporting) -> None:
    before_s = cpu_s(exporter.process.pid)
    texts = set()
    began_s = time.monotonic()
    for _ in range(300):
        texts.add(get(exporter.url).body)
    wall_s = time.monotonic() - began_s
    assert len(texts) <= wall_s + 2
    spent_s = cpu_s(exporter.process.pid) - before_s
    assert spent_s < 0.01 * 300 + 0.5 * wall_s


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_source_that_hangs_delays_no_scrape_and_shows_as_such(tmp_path: Path) -> None:
    with start(HostPlan("v5e-1")) as host, exporting(tmp_path, "--simulate", host.root) as found:
        found.wait_until_ready()
        assert "tpusmi_metrics_server_up{" in get(found.url).text
        set_faults(host.root, ("silent",))
        took_s: list[float] = []
        down = re.compile(r"^tpusmi_metrics_server_up{.*} 0\.0$", re.MULTILINE)

        def is_down() -> bool:
            time.sleep(0.2)
            with Stopwatch() as scrape:
                text = get(found.url).text
            took_s.append(scrape.seconds())
            return bool(down.search(text))

        until(is_down, what="the server is down")
        assert max(took_s) < 1.5


@needs("promtool")
def test_it_serves_where_there_is_no_tpu(tmp_path: Path) -> None:
    """As on a node whose TPU is yet to come."""
    with exporting(tmp_path) as found:
        found.wait_until_ready()
        text = get(found.url).text
    assert "tpusmi_build_info{" in text
    assert "simulated=" not in text
    assert checked(text.encode()).returncode == 0


# -- hostile clients


def raw(port: int, data: bytes, *, says_more: bool = False) -> bytes:
    """All that the server answers to these bytes until it closes the connection."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as one:
        try:
            one.sendall(data)
            if not says_more:
                one.shutdown(socket.SHUT_WR)
            while more := one.recv(65536):
                answer += more
        except OSError:  # it was closed already
            pass
    return answer


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
        + bytes(1_000_000),
        b"GET /metrics HTTP/1.1\r\n\r\n",
        b"\0\xff" * 5000,
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: " + b",;q=" * 900 + b"\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_an_odd_request_costs_only_itself(exporter: Exporting, data: bytes) -> None:
    answer = raw(exporter.port, data)
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 200"))
    assert b"Traceback" not in answer
    assert get(exporter.url).status == 200


def test_a_client_of_http_1_0_needs_no_host(exporter: Exporting) -> None:
    """As the checks of some load balancers, and scripts. No browser leaves it out."""
    for path, text in (("/-/healthy", b"tpusmi is healthy"), ("/metrics", b"# HELP tpusmi_")):
        answer = raw(exporter.port, f"GET {path} HTTP/1.0\r\n\r\n".encode(), says_more=True)
        assert answer.startswith(b"HTTP/1.0 200")
        assert text in answer


def test_a_request_with_a_broken_body_is_no_error_of_the_server(exporter: Exporting) -> None:
    head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    body = b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"
    answer = raw(exporter.port, head + body, says_more=True)
    assert answer.startswith(b"HTTP/1.1 200")
    assert get(exporter.url).status == 200
    assert "Error" not in exporter.said


def test_clients_that_say_or_read_nothing_keep_no_scrape_out(exporter: Exporting) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    opened = []
    try:
        for number in range(400):
            one = socket.create_connection(("127.0.0.1", exporter.port), timeout=LIMIT_S)
            opened.append(one)
            if number % 2:
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        with Stopwatch() as scrape:
            assert get(exporter.url).status == 200
        assert scrape.seconds() < 10
    finally:
        for one in opened:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    resident = int(Path(f"/proc/{exporter.process.pid}/statm").read_text().split()[1]) * 4096
    assert resident < 400 << 20


def test_a_page_of_another_site_learns_nothing(exporter: Exporting) -> None:
    for headers in (
        {"Origin": "http://evil.example"},
        {"Host": f"evil.example:{exporter.port}"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
    ):
        for path in ("/metrics", "/", "/-/ready"):
            answer = get(f"{exporter.base}{path}", **headers)
            assert answer.status == 403
            assert "tpusmi_" not in answer.text


def test_a_server_for_others_answers_to_any_name(tmp_path: Path, host: Host) -> None:
    with exporting(tmp_path, "--simulate", host.root, "--bind", "0.0.0.0") as found:
        warning, _ = found.said.splitlines()
        assert warning == (
            "tpusmi: warning: anyone who reaches 0.0.0.0 can read these numbers, unencrypted: "
            "see --web-config"
        )
        url = f"http://127.0.0.1:{found.port}/metrics"
        assert get(url, Host="tpu-vm-3.europe.internal:8781").status == 200
        assert get(url, Host="tpu-vm-3.x", Origin="http://evil.example").status == 403


# -- its beginning and its end


def test_it_binds_to_this_machine_only_and_says_where(exporter: Exporting) -> None:
    assert exporter.said == f"tpusmi: http://127.0.0.1:{exporter.port}/metrics  (Ctrl-C ends it)\n"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", exporter.port), timeout=LIMIT_S)


def test_a_port_in_use_is_told_in_a_sentence(tmp_path: Path, exporter: Exporting) -> None:
    done = tpusmi(tmp_path, "serve", "--port", str(exporter.port), "--bind", "127.0.0.1")
    where = f"127.0.0.1, port {exporter.port}"
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == f"tpusmi: {where} is in use: choose another --port\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--port 70000", "70000 is not a port"),
        ("--interval 5", "--interval needs --textfile"),
        ("--textfile /nowhere", "/nowhere is not a directory"),
        ("--textfile / --web-config x", "--web-config is for the server"),
        ("--slice=", "must be a name"),
        ("--bind=", "'' is not an address: 0.0.0.0 is all"),
        ("--bind=*", "'*' is not an address"),
        ("--bind=[]", "'[]' is not an address"),
        ("--bind=a..b", "a..b is not an address"),
        (f"--bind={'a' * 64}", "a is not an address"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(tmp_path: Path, words: str, why: str) -> None:
    done = tpusmi(tmp_path, "serve", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tpusmi serve: error: ")
    assert why in done.stderr


def test_an_address_that_is_not_this_machines_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = tpusmi(tmp_path, "serve", "--bind", "192.0.2.1", "--port", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("tpusmi: cannot listen on 192.0.2.1, port 0: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)]
)
def test_a_signal_ends_it_at_once_whatever_its_clients_do(
    tmp_path: Path, host: Host, number: signal.Signals, code: int
) -> None:
    with exporting(tmp_path, "--simulate", host.root) as found:
        with closing(socket.create_connection(("127.0.0.1", found.port))) as one:
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
            time.sleep(0.2)
            began_s = time.monotonic()
            found.process.send_signal(number)
            assert found.process.wait(LIMIT_S) == code
        assert time.monotonic() - began_s < 20
        assert found.process.stderr is not None
        assert found.process.stderr.read() == ""


@pytest.mark.parametrize("package", ["prometheus_client", "aiohttp"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, package: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *a: None if name == {package!r} "
        "else find(name, *a)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, map(os.path.abspath, sys.path))])
    done = tpusmi(tmp_path, "serve", "--port", "0", PYTHONPATH=path)
    assert done.returncode == 1
    expected = f"tpusmi: {package} is not installed here: pip install 'tpusmi[serve]'\n"
    assert done.stderr == expected


# -- a text file


@needs("promtool")
def test_a_text_file_is_whole_readable_and_gone_at_the_end(tmp_path: Path, host: Host) -> None:
    directory = tmp_path / "textfile"
    directory.mkdir()
    (directory / ".tpusmi.prom.new").write_text("of one that was killed")
    process = subprocess.Popen(
        [*TPUSMI, "serve", "--simulate", host.root, f"--textfile={directory}", "--interval=0.3"],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        umask=0o077,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line == f"tpusmi: writing {directory}/tpusmi.prom every 0.3 s  (Ctrl-C ends it)\n"
        path = directory / "tpusmi.prom"
        first = path.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o644
        assert [p.name for p in directory.glob("*.prom")] == ["tpusmi.prom"]
        assert checked(first).returncode == 0
        assert b"tpusmi_chip_info{" in first
        for _ in range(200):  # each read sees a whole text
            text = path.read_bytes()
            assert text.startswith(b"# HELP tpusmi_")
            assert b"tpusmi_snapshot_build_seconds{" in text
            time.sleep(0.005)
        until(lambda: path.read_bytes() != first, LIMIT_S, "written again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
        assert process.stderr.read() == ""
        assert list(directory.iterdir()) == []
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def test_a_directory_that_cannot_be_written_is_told_in_a_sentence(
    tmp_path: Path, host: Host
) -> None:
    done = tpusmi(tmp_path, "serve", "--simulate", host.root, "--textfile", "/proc")
    assert done.returncode in (3, 74)
    assert done.stderr.startswith("tpusmi: /proc/tpusmi.prom cannot be written: ")
