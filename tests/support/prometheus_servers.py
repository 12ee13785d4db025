"""Servers in this process that answer as Prometheus does, or as none should."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from support.exporter_servers import Listening


class Question(NamedTuple):
    """What a client sent."""

    path: str
    parameters: Mapping[str, str]
    head: str

    @property
    def series(self) -> str:
        """The name at the beginning of the expression."""
        return self.parameters.get("query", "").partition("{")[0].partition(" ")[0]


Talk = Callable[[socket.socket, Question], object]


class AnsweringServer(Listening):
    """A server on this machine, each of whose connections is one of `answers`."""

    def __init__(self, answers: Talk, context: ssl.SSLContext | None, address: str) -> None:
        self.answers = answers
        self.questions: list[Question] = []
        super().__init__(self._answers, address, 0, context)

    def _answers(self, connection: socket.socket, head: bytes) -> None:
        question = _question(head)
        self.questions.append(question)
        self.answers(connection, question)


def _question(head: bytes) -> Question:
    text = head.decode("latin-1")
    parts = urlsplit(text.split(" ")[1] if " " in text else "")
    return Question(path=parts.path, parameters=dict(parse_qsl(parts.query)), head=text)


@contextmanager
def answering(
    talk: Talk, context: ssl.SSLContext | None = None, address: str = "127.0.0.1"
) -> Iterator[AnsweringServer]:
    """A server on a free port."""
    server = AnsweringServer(talk, context, address)
    try:
        yield server
    finally:
        server.close()


def send(connection: socket.socket, body: object, status: str = "200 OK", **headers: str) -> None:
    """One answer; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items())]
    connection.sendall("\r\n".join((*lines, "", "")).encode("latin-1") + data)


def vector(series: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """The answer to an instant query."""
    return {"status": "success", "data": {"resultType": "vector", "result": series}, **more}


def one(value: object, **labels: str) -> dict[str, Any]:
    """A series of such an answer."""
    return {"metric": labels, "value": [1e9, value]}


def prometheus_like(
    series: Mapping[str, Sequence[Mapping[str, Any]]], now_s: float, **more: Any
) -> Talk:
    """A server that has these series."""

    def talk(connection: socket.socket, question: Question) -> None:
        if question.parameters.get("query") == "time()":
            data = {"resultType": "scalar", "result": [now_s, f"{now_s}"]}
            send(connection, {"status": "success", "data": data})
            return
        send(connection, vector(series.get(question.series, ()), **more))

    return talk
