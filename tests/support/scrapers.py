"""`tpusmi serve` as a command of its own, and a real Prometheus that scrapes it."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from support.free_ports import free_port
from support.listening_commands import Listening, listening
from support.waits import until

LIMIT_S = 50.0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def get(
    url: str, context: ssl.SSLContext | None = None, method: str = "GET", **headers: str
) -> Answer:
    """What the server answers, whatever its status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, headers=named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S, context=context) as answer:
            return Answer(answer.status, dict(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, dict(error.headers), error.read())


def basic(user: str, password: str) -> str:
    """The header `Authorization` of that user."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class Exporting(Listening):
    """An exporter that listens."""

    @property
    def base(self) -> str:
        return self.url.removesuffix("/metrics")

    def wait_until_ready(self, context: ssl.SSLContext | None = None) -> None:
        until(lambda: get(f"{self.base}/-/ready", context).status == 200, LIMIT_S, "ready")


def exporting(
    directory: Path, *arguments: str, prefix: Sequence[str] = (), port: int = 0
) -> AbstractContextManager[Exporting]:
    """An exporter on that port, or a free one."""
    words = ("serve", "--port", str(port), *arguments)
    return listening(Exporting, directory, *words, prefix=prefix)


class Prometheus:
    """A real Prometheus."""

    def __init__(self, base: str) -> None:
        self.base = base

    def api(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        url = f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        answer = json.loads(get(url).body)
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of every series of the result."""
        found = self.api("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def targets(self) -> dict[str, tuple[str, str]]:
        """The health of each target and its last error, by its address."""
        active = self.api("targets")["activeTargets"]
        return {t["labels"]["instance"]: (t["health"], t["lastError"]) for t in active}

    def wait_until(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The result, once there is any."""
        until(lambda: self.query(expression), LIMIT_S, expression)
        return self.query(expression)


@contextmanager
def prometheus(
    directory: Path,
    jobs: Sequence[dict[str, Any]],
    rules: Sequence[Path] = (),
    flags: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these jobs every half a second. With flags that make it answer
    others only, the Prometheus that is given cannot be asked.
    """
    config = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": list(jobs),
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                *flags,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        base = f"http://127.0.0.1:{port}"
        until(lambda: _is_ready(process, base, bool(flags)), LIMIT_S, "prometheus is ready")
        yield Prometheus(base)
    finally:
        process.kill()
        process.wait(LIMIT_S)


def _is_ready(process: subprocess.Popen[bytes], base: str, is_refused: bool) -> bool:
    assert process.poll() is None, "prometheus has ended"
    try:
        return get(f"{base}/-/ready").status == 200 or is_refused
    except OSError:
        return False


def job(*addresses: str, **more: Any) -> dict[str, Any]:
    """A scrape configuration of these targets."""
    return {"job_name": "tpusmi", "static_configs": [{"targets": list(addresses)}], **more}
