"""Questions to the HTTP API of a Prometheus server, or of one that answers like it: Thanos, Mimir,
VictoriaMetrics, Google's Managed Service.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple
from urllib.parse import quote, urlencode

from tpusmi.fleet.http.http_address import HttpServer, server_and_path
from tpusmi.fleet.http.http_config import HttpConfig
from tpusmi.fleet.http.http_reading import HttpError, HttpLengthError, HttpStatusError, get
from tpusmi.fleet.http.http_secrets import without_secrets
from tpusmi.fleet.prometheus.prometheus_answers import (
    TEXT_CHARACTERS,
    QueryAnswer,
    QueryAnswerError,
)
from tpusmi.text import clean, redacted

ANSWER_BYTES = 32 << 20
"""The longest answer: one series of 100,000 chips."""
READING_S = 20.0
"""How long answers are read after the time for questions is over. A hundred thousand chips take a
few seconds; what no Prometheus writes could take hours.
"""
USUAL_PORT = 9090
"""The port of an address without http:// and without a port."""
_PAGES = ("/api/v1/query_range", "/api/v1/query", "/api/v1", "/graph", "/query", "/classic/graph")
"""Endings of addresses that users copy from a browser or a manual."""
SHOWN_CHARACTERS = 200
"""A text of the server is cut to this."""


class PrometheusAddress(NamedTuple):
    """Where the server is."""

    server: HttpServer
    prefix: str
    """Path before `/api/v1`, without a slash at its end."""

    def __str__(self) -> str:
        return f"{self.server}{clean(self.prefix, 100)}"


class QueryTime(NamedTuple):
    """For which time it is asked, and until when it is waited for."""

    at_s: float | None
    """Unix time; None for the server's present."""
    until_s: float
    """As time.monotonic()."""


class PrometheusError(Exception):
    """A query without an answer. Its text is a sentence without credentials."""

    def __init__(self, sentence: str, is_rejected: bool = False) -> None:
        super().__init__(sentence)
        self.is_rejected = is_rejected
        """The server has read the query, and does not run it."""


def prometheus_address(url: str) -> PrometheusAddress:
    """The server of that URL; `host:9090` is one also. Raises ValueError with a sentence."""
    url = url.strip()
    name = clean(url.rpartition("@")[2].partition("?")[0], 80)
    if "@" in url:
        raise ValueError(f"{name}: put the user and the password in a file for --http-config")
    has_scheme = "://" in url
    server, path = server_and_path(
        url if has_scheme else f"http://{url}", None if has_scheme else USUAL_PORT
    )
    path, _, query = path.partition("?")
    prefix = path.rstrip("/")
    page = next((page for page in _PAGES if prefix.endswith(page)), "")
    if query and not page:
        raise ValueError(f"{name}: leave out what follows the question mark")
    return PrometheusAddress(server, prefix.removesuffix(page))


class PrometheusApi:
    """One server. Safe to use on several threads."""

    def __init__(self, address: PrometheusAddress, config: HttpConfig) -> None:
        self.address = address
        self._config = config

    def query(self, expression: str, when: QueryTime) -> QueryAnswer:
        """The answer to an instant query. Raises PrometheusError."""
        at = {} if when.at_s is None else {"time": f"{when.at_s:.3f}"}
        return self._ask("query", {"query": expression, **at}, when.until_s)

    def query_range(
        self, expression: str, times: tuple[float, float, float], until_s: float
    ) -> QueryAnswer:
        """The answer to a range query over times from, to and step. Raises PrometheusError."""
        names = zip(("start", "end", "step"), times, strict=True)
        return self._ask(
            "query_range",
            {"query": expression, **{name: f"{value:.3f}" for name, value in names}},
            until_s,
        )

    def safe(self, text: str) -> str:
        """The text of a server, cut, without our secrets, which some servers repeat."""
        text = without_secrets(text, self.address.server, self._config)
        return clean(redacted(text), SHOWN_CHARACTERS)

    def _ask(self, what: str, parameters: dict[str, str], until_s: float) -> QueryAnswer:
        left_s = max(1, math.ceil(until_s - time.monotonic()))
        sent = urlencode({**parameters, "timeout": f"{left_s}s"}, quote_via=quote)
        path = f"{self.address.prefix}/api/v1/{what}?{sent}"
        try:
            answer = get(
                self.address.server, path, self._config, until_s, ANSWER_BYTES, "application/json"
            )
        except HttpStatusError as error:
            raise self._refused(error) from None
        except HttpLengthError:
            most = f"{ANSWER_BYTES >> 20} MiB"
            raise PrometheusError(f"its answer is longer than {most}: use --match") from None
        except HttpError as error:
            raise PrometheusError(self.safe(str(error))) from None
        if answer.content_type == "text/html" or answer.body[:64].lstrip()[:1] == b"<":
            raise PrometheusError(
                "it answers with a web page: a login may be in front of it, "
                "or the path to Prometheus is missing in the address"
            )
        return QueryAnswer(answer.body, until_s + READING_S)

    def _refused(self, error: HttpStatusError) -> PrometheusError:
        """What a status other than 200 means, and what to do."""
        reason = self.safe(_error_of(error.body))
        why = f": {reason}" if reason else ""
        status = error.status
        if status == 401 and self._config.has_secrets:
            return PrometheusError("it does not accept the credentials of --http-config (401)")
        if status in _ADVICE:
            return PrometheusError(f"{_ADVICE[status]}{why if status != 404 else ''}")
        if status in (400, 405, 414, 422):
            return PrometheusError(f"it rejects the query ({status}){why}", is_rejected=True)
        if status == 503 and "timed out" in reason:
            return PrometheusError(f"the query takes it too long (503){why}")
        return PrometheusError(f"{self.safe(str(error))}{why}")


_ADVICE = {
    401: "it wants a password or a token: see --http-config (401)",
    403: "it does not allow the query with these credentials: see --http-config (403)",
    404: "it has no Prometheus API there (404): a path may be missing in the address, "
    "as in http://host/prometheus; for exporters, use --hosts",
    407: "the proxy wants a password (407)",
    429: "it gets too many requests (429): ask less often, with --interval",
    502: "the gateway in front of it does not reach it (502)",
    503: "it is not ready, or has too much to do (503)",
    504: "the gateway in front of it does not get its answer in time (504)",
}


def _error_of(body: bytes) -> str:
    """What the server says went wrong, in its JSON or as a line of plain text; else empty."""
    answer = QueryAnswer(body)
    try:
        for _ in answer.series():
            pass
    except QueryAnswerError:
        pass
    if answer.error or body[:64].lstrip()[:1] in (b"<", b"{"):
        return answer.error
    return clean(body[:TEXT_CHARACTERS].decode("utf-8", "replace"))
