"""What a Prometheus server answers, and the matchers and the HTTP configuration of a user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from support.prometheus_servers import one, vector

from fuzz.target import Target, target
from tpusmi.fleet.hosts.from_samples import read_hosts
from tpusmi.fleet.http.http_config import read_http_config
from tpusmi.fleet.prometheus.matchers import matchers
from tpusmi.fleet.prometheus.prometheus_answers import QueryAnswer
from tpusmi.fleet.prometheus.prometheus_api import prometheus_address
from tpusmi.fleet.samples import SeriesSample

YAML_BYTES = 4096
"""The parser takes a second for the longest that is read."""
HOST = {"instance": "10.0.0.1:8781", "job": "tpusmi", "host": "vm-1", "slice": "pod-7"}


def _refusal(read: Callable[[], object]) -> str:
    """The sentence with which it is refused; empty if it is not."""
    try:
        read()
    except ValueError as wrong:  # each of them is a subclass with a sentence
        return str(wrong)
    return ""


@target
def prometheus_answer(directory: Path) -> Iterator[Target]:
    series = [
        one("1e9", __name__="tpusmi_snapshot_timestamp_seconds", **HOST),
        one("0.5", __name__="tpusmi_duty_cycle_ratio", chip="0", device="0", **HOST),
        one("1", __name__="tpusmi_device_info", chip="0", device="0", coords="1,2,0", **HOST),
        one("1", __name__="tpusmi_process_phase", pid="7", job_name="a.py", phase="idle", **HOST),
    ]
    scalar = {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}
    error = {"status": "error", "errorType": "bad_data", "error": "why", "warnings": ["a"]}
    whole = vector(series * 20, warnings=["a", "b"], infos=["c"], isPartial=True)
    inputs = [json.dumps(x, separators=(",", ":")).encode() for x in (whole, scalar, error)]
    inputs.append(json.dumps(whole, indent=2).encode())

    def run(data: bytes) -> None:
        for name in (None, "tpusmi_hbm_used_bytes"):
            answer = QueryAnswer(data)
            samples: list[SeriesSample] = []
            texts = [_refusal(lambda a=answer, n=name, s=samples: s.extend(a.samples(n)))]
            read_hosts(samples, 1e9)
            assert all(text.isprintable() for text in (*texts, *answer.notes))
        _refusal(QueryAnswer(data).scalar)

    words = [
        b'},{"metric":{',
        b'"value":[1,"',
        b"NaN",
        b"[" * 50,
        b'{"a":' * 50,
        b"\\ud800",
        b'"data":{',
    ]
    yield Target(run, inputs, [*words, b'"result":[', b"1" * 5000, b"\xff", b"\\u0000", b"1e999"])


@target
def fleet_options(directory: Path) -> Iterator[Target]:
    """What follows `--prometheus`, `--match` and `--http-config`."""
    path = directory / "http.yml"

    def run(data: bytes) -> None:
        path.write_bytes(data[:YAML_BYTES])
        text = data.decode("utf-8", "surrogateescape")
        texts = [
            _refusal(lambda: read_http_config(str(path)).headers()),
            _refusal(lambda: matchers([text])),
            _refusal(lambda: prometheus_address(text)),
        ]
        assert all(one.isprintable() for one in texts)

    inputs = [
        b"basic_auth: {username: a, password: b}\nproxy_url: http://a:1\nno_proxy: a,10.0.0.0/8\n",
        b"tls_config: {server_name: a, min_version: TLS13}\nhttp_headers: {A: {values: [b]}}\n",
        b'{job="tpusmi",slice=~"pod-.*",host!=a}',
        b"https://host:9090/prometheus/graph?g0.expr=up",
    ]
    words = [
        b'\\"',
        b"\\x41",
        b"@",
        b"[::1]",
        b"!!python/object",
        b"&a [*a]",
        b": ",
        b"\n",
        b"{" * 9,
    ]
    yield Target(run, inputs, words)
