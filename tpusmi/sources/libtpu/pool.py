"""Many metrics servers at once, each on a thread of its own: one that hangs delays no other.

The last reply of a server that is gone or fails is kept: it grows old on the screen, and is not
wiped off it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Container, Iterable

from tpusmi.model import ABSENT, FAILED, OK
from tpusmi.sources.libtpu.ports import USUAL, Endpoint, EndpointReply, ServerReply, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.libtpu.client import Client

ANSWER_S = 1.8
"""A server that hangs in spite of its own deadline is left behind after that."""
GUESSES_FAILED_MOST = 3
"""A port that no setting names is given up after so many failures, until another listens there."""
KEPT_S = 60.0
"""A reply older than that is not given again: no screen would show it."""
PORTS_MOST = 64

_Key = tuple[int, int | None]
"""Port and socket: a server that was started again is another one."""


class Pool:
    """Clients of the endpoints that are asked, kept between reads."""

    def __init__(self, metrics: Container[str] | None = None) -> None:
        """`metrics` are the names to ask for; None is all of them."""
        self._metrics = metrics
        self._clients: dict[_Key, Client] = {}
        self._hanging: dict[_Key, threading.Thread] = {}
        """Threads that wait for a server, which is asked again once its thread has ended."""
        self._last: dict[int, EndpointReply] = {}
        """The last good reply on each port."""

    def ask(
        self, endpoints: Iterable[Endpoint], now_s: float, with_programs: bool = False
    ) -> list[EndpointReply]:
        """The reply of each endpoint that is not given up, and the last ones of servers that are
        gone. Waits ANSWER_S at most. Raises what no server should be able to cause: our own bugs.
        """
        endpoints = [*endpoints]
        if len(endpoints) == 1 and not self._clients and target_of(endpoints[0].port) is None:
            return self._completed([_silent(endpoints[0])], now_s)
        by_key = self._live(endpoints)
        servers = [e for e in by_key.values() if e.port in USUAL or not e.is_guess]
        is_alone = sum(e.socket is not None for e in servers) <= 1
        for key, endpoint in by_key.items():
            client = self._clients[key]
            client.process, client.with_programs = endpoint.process, with_programs
            client.is_alone = is_alone
        replies = self._replies({key: self._clients[key] for key in by_key}, now_s)
        newest = []
        for key, endpoint in by_key.items():
            reply = replies.get(key) or ServerReply(FAILED, f"port {endpoint.port} hangs")
            if endpoint.is_guess and reply.status == FAILED:
                self._clients[key].failed_reads += 1 if reply.is_service else GUESSES_FAILED_MOST
            newest.append(EndpointReply(endpoint, reply))
        return self._completed(newest, now_s)

    def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _live(self, endpoints: Iterable[Endpoint]) -> dict[_Key, Endpoint]:
        """The endpoints worth asking, each with a client; the clients of others are closed."""
        from tpusmi.sources.libtpu.client import Client

        by_key = {(e.port, e.socket): e for e in endpoints}
        for key in self._clients.keys() - by_key.keys():
            self._clients.pop(key).close()
        for port, socket in by_key.keys() - self._clients.keys():
            self._clients[port, socket] = Client(port, self._metrics)
        return {
            key: e
            for key, e in by_key.items()
            if not e.is_guess or self._clients[key].failed_reads < GUESSES_FAILED_MOST
        }

    def _replies(self, clients: dict[_Key, Client], now_s: float) -> dict[_Key, ServerReply]:
        """What each client read in time."""
        reads = _Reads(now_s)
        free = [pair for pair in clients.items() if pair[0] not in self._hanging]
        if len(free) == len(clients) == 1:
            reads.read(*free[0])
        else:
            until_s = time.monotonic() + ANSWER_S
            for key, client in free:
                thread = reads.start(key, client, until_s)
                if thread is not None:
                    self._hanging[key] = thread
            for thread in self._hanging.values():
                thread.join(max(0.0, until_s - time.monotonic()))
            self._hanging = {k: thread for k, thread in self._hanging.items() if thread.is_alive()}
        if reads.bugs:
            raise reads.bugs[0]
        return {**reads.replies}  # a thread that hangs may still add one

    def _completed(self, newest: list[EndpointReply], now_s: float) -> list[EndpointReply]:
        """The replies, those of servers that are gone or fail with what they reported before."""
        ports = {a.endpoint.port for a in newest}
        gone = [_silent(a.endpoint) for port, a in self._last.items() if port not in ports]
        completed = [self._with_last(a, now_s) for a in (*newest, *gone)]
        good = [a for a in completed if a.reply.readings or a.reply.latencies]
        self._last = {a.endpoint.port: a for a in good[:PORTS_MOST]}
        return [a for a in completed if a.endpoint.port in ports or a.endpoint.port in self._last]

    def _with_last(self, newest: EndpointReply, now_s: float) -> EndpointReply:
        endpoint, reply = newest
        last = self._last.get(endpoint.port)
        if last is None or reply.status == OK or reply.readings or reply.latencies:
            return newest
        if reply.status == FAILED and endpoint.socket != last.endpoint.socket:
            return newest  # another server, which has nothing to do with the one before
        least_s = now_s - KEPT_S
        kept = reply._replace(
            readings=tuple(r for r in last.reply.readings if r.at_s >= least_s),
            latencies=tuple(x for x in last.reply.latencies if x.at_s >= least_s),
            ids=last.reply.ids,
        )
        return EndpointReply(last.endpoint, kept)


def _silent(endpoint: Endpoint) -> EndpointReply:
    reply = ServerReply(ABSENT, f"nothing listens on port {endpoint.port}")
    return EndpointReply(endpoint, reply)


class _Reads:
    """One read of several clients, and what came of it."""

    def __init__(self, now_s: float) -> None:
        self.replies: dict[_Key, ServerReply] = {}
        self.bugs: list[Exception] = []
        self._now_s = now_s

    def start(self, key: _Key, client: Client, until_s: float) -> threading.Thread | None:
        """Read on a thread; here, as far as there is time, where no thread can be started."""
        thread = threading.Thread(target=self.read, args=(key, client), daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if time.monotonic() < until_s:
                self.read(key, client)
            else:
                why = f"port {client.port} was not asked: {error}"
                self.replies[key] = ServerReply(FAILED, why)
            return None
        return thread

    def read(self, key: _Key, client: Client) -> None:
        """Read one client."""
        try:
            self.replies[key] = client.read(self._now_s)
        except OSError as error:  # no descriptor left, say
            why = f"port {client.port}: {error.strerror or error}"
            self.replies[key] = ServerReply(FAILED, why)
        except Exception as error:  # noqa: BLE001  # the end of a thread: ask() raises it
            self.bugs.append(error)
