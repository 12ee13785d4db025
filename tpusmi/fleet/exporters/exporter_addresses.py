"""The exporters that a user names: `worker-0`, `worker-[0-63]:8781`, `[::1]:8781`,
`https://worker-0:8781/metrics`, a file with one of these in each line, `-` for standard input, and
`@tpusmi.default.svc:8781` for all addresses that a name has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tpusmi.configuration_file import ConfigurationError, content
from tpusmi.fleet.http.http_address import HttpServer, is_host, server_and_path
from tpusmi.model.series_names import EXPORTER_PORT, METRICS_PATH
from tpusmi.text import clean

ADDRESSES_MOST = 4096
FILE_BYTES = 1 << 20
FILE_SUFFIX = ".txt"
DIGITS_MOST = 6
_PARTS = re.compile(r"(?:\[[^\[\]]*\]|[^,\s])+")
_ADDRESS = re.compile(
    r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\[\]:/@]+))(?::(\d{1,5}))?", re.ASCII
)
_IN_PORTS = frozenset("0123456789[],-")
_RANGE = re.compile(r"\[([0-9,-]+)\]", re.ASCII)


class Exporter(NamedTuple):
    """Where an exporter listens."""

    server: HttpServer
    path: str = METRICS_PATH

    def __str__(self) -> str:
        return f"{self.server}{'' if self.path == METRICS_PATH else self.path}"


class Exporters(NamedTuple):
    """What a user names."""

    exporters: tuple[Exporter, ...]
    services: tuple[Exporter, ...]
    """Names, each for all of its addresses."""

    def __str__(self) -> str:
        names = [str(one) for one in self.exporters] + [f"@{one}" for one in self.services]
        return names[0] if len(names) == 1 else f"{len(names)} exporters"


def exporters_of(text: str, read_input: Callable[[int], bytes]) -> Exporters:
    """The exporters in a text, with commas or spaces between them. `read_input` gives at most that
    many bytes of standard input. Raises ValueError with a sentence.
    """
    single: dict[Exporter, None] = {}
    services: dict[Exporter, None] = {}
    for word in _words(text, read_input):
        kind = services if word.startswith("@") else single
        for name in _expanded(word.removeprefix("@")):
            kind[_exporter(name)] = None
            if len(single) + len(services) > ADDRESSES_MOST:
                raise ValueError(f"there are more than {ADDRESSES_MOST} addresses")
    if not single and not services:
        raise ValueError("there is no address of an exporter")
    return Exporters(tuple(single), tuple(services))


def _words(text: str, read_input: Callable[[int], bytes]) -> Iterator[str]:
    for word in [text] if os.path.isfile(text) else _PARTS.findall(text):
        if word == "-":
            yield from _lines("standard input", read_input(FILE_BYTES + 1))
        elif _is_path(word):
            yield from _lines(clean(word, 200), _content(word))
        else:
            yield word


def _is_target(word: str) -> bool:
    """True for an address with a path, as Prometheus shows it: `worker-0:8781/metrics`."""
    address, slash, _ = word.partition("/")
    name, _, port = address.rpartition(":")
    return bool(slash and name and port) and _IN_PORTS.issuperset(port)


def _is_path(word: str) -> bool:
    if "://" in word or _is_target(word):
        return False
    # A file that is not here must not be looked up as the name of a machine.
    is_text = word.lower().endswith(FILE_SUFFIX) or os.path.isfile(word)
    return "/" in word or (word[0] != "@" and is_text)


def _content(path: str) -> bytes:
    """The content of a file, or of a pipe such as `<(kubectl get …)`, which is waited for."""
    try:
        return content(os.path.expanduser(path), FILE_BYTES)
    except ConfigurationError as error:
        raise ValueError(f"{clean(path, 200)} {error}") from None


def _lines(name: str, data: bytes) -> Iterable[str]:
    if len(data) > FILE_BYTES:
        raise ValueError(f"{name} is longer than {FILE_BYTES} bytes")
    for line in data.decode("utf-8", "replace").splitlines():
        yield from _PARTS.findall(line.partition("#")[0])


def _expanded(word: str) -> Iterator[str]:
    """The names that a word with ranges such as `[0-63]` and `[08-11,15]` stands for."""
    if len(word) > 2000:
        raise ValueError(f"{clean(word, 60)} is too long")
    match = _RANGE.search(word)
    if match is None:
        yield word
        return
    for number in _numbers(match[1]):
        yield from _expanded(f"{word[: match.start()]}{number}{word[match.end() :]}")


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (_is_number(first) and _is_number(last)) or int(first) > int(last):
            raise ValueError(f"[{clean(text, 60)}] is not a range such as [0-63] or [08-11,15]")
        width = len(first) if first.startswith("0") else 0
        yield from (f"{number:0{width}}" for number in range(int(first), int(last) + 1))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MOST


def _exporter(word: str) -> Exporter:
    if _is_target(word) and "://" not in word:
        word = f"http://{word}"
    if "://" in word:
        server, path = server_and_path(word, EXPORTER_PORT)
        return Exporter(server, METRICS_PATH if path in ("", "/") else path)
    if "@" in word:
        name = clean(word.rpartition("@")[2], 80)
        raise ValueError(f"{name}: put the user and the password in a file for --http-config")
    match = _ADDRESS.fullmatch(word)
    if match is None or not is_host(match[1] or match[2]):
        raise ValueError(_advice(clean(word, 80)))
    port = int(match[3] or EXPORTER_PORT)
    if not 0 < port < 65536:
        raise ValueError(f"{clean(word, 80)}: {port} is not a port")
    return Exporter(HttpServer(match[1] or match[2], port))


def _advice(word: str) -> str:
    if word.count(":") > 1 and re.fullmatch(r"[0-9A-Fa-f:.]+", word):
        return f"{word} needs brackets around its IPv6 address: write [::1]:{EXPORTER_PORT}"
    return f"{word} is not an address such as worker-0:{EXPORTER_PORT}"
