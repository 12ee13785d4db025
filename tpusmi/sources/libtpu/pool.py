"""Many metrics servers at once, each on a thread of its own: one that hangs delays no other."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import threading
import time
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from tpusmi.model import FAILED
from tpusmi.sources.libtpu.channel import AnyChannel, connected
from tpusmi.sources.libtpu.client import Client, Told
from tpusmi.sources.libtpu.ports import USUAL, Place
from tpusmi.text import clean

ANSWER_S = 1.8
"""A server that hangs in spite of its own deadline is left behind then."""
GUESSES_FAILED_MOST = 3
"""A port that nobody named is given up after so many failures, until another listens there."""

_Key = tuple[int, int | None]
"""Port and socket: a server that was started again is another one."""


class Answered(NamedTuple):
    """What the server in a place told."""

    place: Place
    told: Told


class Pool:
    """Clients of the places that are asked, kept between reads."""

    def __init__(
        self,
        metrics: Container[str] | None = None,
        connect: Callable[[str], AnyChannel] = connected,
    ) -> None:
        """`metrics` are those that are wanted; None is all of them."""
        self._metrics = metrics
        self._connect = connect
        self._clients: dict[_Key, Client] = {}
        self._failed_guesses: dict[_Key, int] = {}
        self._asking: dict[_Key, threading.Thread] = {}
        """Those that hang: asked again once they have let go."""

    def ask(
        self, places: Iterable[Place], now_s: float, with_programs: bool = False
    ) -> list[Answered]:
        """What each place tells, less those that proved to be none. Waits ANSWER_S at most."""
        wanted = {_key(p): p for p in places if not self._is_given_up(p)}
        for key in self._clients.keys() - wanted.keys():
            self._clients.pop(key).close()
        servers = (p for p in wanted.values() if p.port in USUAL or not p.is_guess)
        listening = sum(p.socket is not None for p in servers)
        for key, place in wanted.items():
            client = self._clients.setdefault(key, self._new_client(place.port))
            client.process, client.with_programs = place.process, with_programs
            client.is_alone = listening <= 1
        told = self._told(now_s)
        found = [Answered(place, told.get(key) or _hangs(place)) for key, place in wanted.items()]
        for answered in found:
            self._judge(answered)
        return found

    def _new_client(self, port: int) -> Client:
        return Client(port, self._metrics, self._connect)

    def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _told(self, now_s: float) -> dict[_Key, Told]:
        found: dict[_Key, Told] = {}

        def ask(key: _Key, client: Client) -> None:
            try:
                found[key] = client.read(now_s)
            except Exception as error:  # noqa: BLE001  # a hostile server costs itself, no other
                why = f"port {client.port}: {type(error).__name__}: {clean(str(error), 120)}"
                found[key] = Told(FAILED, why)

        asked = [pair for pair in self._clients.items() if pair[0] not in self._asking]
        if len(asked) == len(self._clients) == 1:
            ask(*asked[0])
            return found
        until_s = time.monotonic() + ANSWER_S
        for pair in asked:
            thread = threading.Thread(target=ask, args=pair, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads: one after the other
                if time.monotonic() < until_s:
                    ask(*pair)
                else:
                    found[pair[0]] = Told(FAILED, f"port {pair[1].port} was not asked: {error}")
                continue
            self._asking[pair[0]] = thread
        for thread in self._asking.values():
            thread.join(max(0.0, until_s - time.monotonic()))
        self._asking = {key: thread for key, thread in self._asking.items() if thread.is_alive()}
        return {**found}

    def _judge(self, answered: Answered) -> None:
        """Count the failures of a port that nobody named; one that is no server has had enough."""
        place, told = answered
        if place.is_guess and told.status == FAILED:
            more = 1 if told.is_service else GUESSES_FAILED_MOST
            self._failed_guesses[_key(place)] = self._failed_guesses.get(_key(place), 0) + more

    def _is_given_up(self, place: Place) -> bool:
        failed = self._failed_guesses.get(_key(place), 0) if place.is_guess else 0
        return failed >= GUESSES_FAILED_MOST


def _key(place: Place) -> _Key:
    return place.port, place.socket


def _hangs(place: Place) -> Told:
    return Told(FAILED, f"port {place.port} hangs")
