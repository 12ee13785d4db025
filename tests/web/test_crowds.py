"""`tpusmi serve-tui` where one user asks for more than a share: the others are served."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp
import pytest
from support.commands import USER, environment
from support.run_as import another_user
from support.simulated_hosts import host_of
from support.waits import until
from support.web_servers import LIMIT_S, Serving, serving, serving_here
from textual_serve.app_service import AppService

from tpusmi.model import Host
from tpusmi.web import connections
from tpusmi.web import server as web
from tpusmi.web.connections import oldest_of_the_largest, peer_of

IDLE = 626
DASHBOARD = "exec head -c 1"
"""In a dashboard's place: ends when it is told anything."""

host = host_of("v5e-1")


@contextmanager
def idle_connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many, of which nothing is heard."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    opened = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S))
        yield opened
    finally:
        for one in opened:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def page(url: str) -> int:
    """The status of the page."""
    limit = aiohttp.ClientTimeout(total=LIMIT_S)
    async with aiohttp.ClientSession(timeout=limit) as http, http.get(url) as answer:
        return answer.status


def rest_of_stderr(server: Serving) -> str:
    """What it said after its address, until its end."""
    assert server.end(signal.SIGTERM) == 0
    assert server.process.stderr is not None
    return server.process.stderr.read()


# -- paths


ODD = [
    "page/" + "a" * 5000,
    "static/" + "a" * 300,
    "static/" + "a/" * 2000,
    "page/%00",
    "page/%ff%fe",
    "page/%2e%2e/server.py",
    "static/js/textual.js/x",
    "static/",
    "page/index.html%0a",
    "download/" + "k" * 4000,
    "b" * 5000,
]


async def test_an_odd_path_is_not_found_and_not_talked_of(tmp_path: Path, host: Host) -> None:
    with serving(tmp_path, "--simulate", host.root) as server:
        async with aiohttp.ClientSession() as http:
            for path in (*ODD, "c" * 9000):
                async with http.get(f"{server.url}{path}") as answer:
                    assert answer.status in ((400, 414) if path == "c" * 9000 else (404,)), path
        assert await page(server.url) == 200
        assert rest_of_stderr(server) == ""


async def test_every_file_of_the_page_is_served(tmp_path: Path, host: Host) -> None:
    with serving(tmp_path, "--simulate", host.root) as server:
        async with aiohttp.ClientSession() as http:
            for path in ("page/page.js", "page/page.css", "static/js/textual.js"):
                async with http.get(f"{server.url}{path}") as answer:
                    assert answer.status == 200
                    assert len(await answer.read()) > 100


# -- connections


async def test_idle_connections_lock_no_one_out(tmp_path: Path, host: Host) -> None:
    few = ("sh", "-c", 'ulimit -n 512; exec "$@"', "sh")
    with (
        serving(tmp_path, "--simulate", host.root, prefix=few) as server,
        idle_connections(server.port, IDLE),
    ):
        for _ in range(3):
            assert await page(server.url) == 200
        opened = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        assert opened < connections.CONNECTIONS_MOST + 50
        assert rest_of_stderr(server) == ""


async def test_nor_do_those_of_another_user(tmp_path: Path, host: Host) -> None:
    """Who connects without end pushes out only what is that user's own."""
    code = """
    import resource, socket, sys
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    kept = []
    print("goes on", flush=True)
    while True:
        kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
        if len(kept) > 1000: kept.pop(0).close()
    """
    with serving(tmp_path, "--simulate", host.root) as server:
        command = another_user(USER, sys.executable, "-c", textwrap.dedent(code), str(server.port))
        with subprocess.Popen(command, stdout=subprocess.PIPE) as attacker:
            assert attacker.stdout is not None
            attacker.stdout.readline()
            async with aiohttp.ClientSession() as http:
                for _ in range(20):  # over one connection, which is never closed
                    async with http.get(server.url) as answer:
                        assert answer.status == 200
                    await asyncio.sleep(0.05)
            attacker.kill()


async def ended(connection: socket.socket) -> bool:
    """True when the server closes it in time."""
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        return await asyncio.wait_for(loop.sock_recv(connection, 1), LIMIT_S) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: local"], ids=["none", "half"])
async def test_who_asks_for_nothing_in_time_is_closed(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    assert 5 <= connections.HEAD_S <= 30
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    async with serving_here(DASHBOARD) as url:
        with closing(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))) as one:
            one.sendall(sent)
            assert await ended(one)


async def test_who_asks_for_nothing_more_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 30 <= connections.REQUEST_S <= 120
    monkeypatch.setattr(connections, "REQUEST_S", 0.3)
    said: list[str] = []
    async with serving_here(DASHBOARD, said) as url, aiohttp.ClientSession() as http:
        for _ in range(2):
            async with http.get(url) as answer:
                assert answer.status == 200
            await asyncio.sleep(2.0)
    assert said == []


async def test_a_tab_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.3)
    async with (
        serving_here(DASHBOARD) as url,
        aiohttp.ClientSession(headers={"Origin": url}) as http,
    ):
        tab = await http.ws_connect(f"{url}/ws")
        with pytest.raises(asyncio.TimeoutError):
            await tab.receive(timeout=2.5)
        assert not tab.closed


@pytest.mark.parametrize("descriptors", [24, 40, 64])
async def test_without_descriptors_it_says_so_and_goes_on(
    tmp_path: Path, host: Host, descriptors: int
) -> None:
    few = ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh")
    with serving(tmp_path, "--simulate", host.root, prefix=few) as server:
        headers = {"Origin": server.url.rstrip("/")}
        async with aiohttp.ClientSession(headers=headers) as http:
            tabs = await asyncio.gather(
                *(http.ws_connect(f"{server.url}ws") for _ in range(16)), return_exceptions=True
            )
            for tab in tabs:
                if isinstance(tab, aiohttp.ClientWebSocketResponse):
                    await tab.close()
        await asyncio.to_thread(until, lambda: server.dashboards == [], LIMIT_S, "all end")
        assert await page(server.url) == 200
        said = rest_of_stderr(server)
        assert "Too many open files" in said
        assert "Traceback" not in said
        assert len(said.splitlines()) <= 4


# -- tabs


TABS = """
import asyncio, sys, aiohttp
url, count = sys.argv[1], int(sys.argv[2])
async def main():
    async with aiohttp.ClientSession(headers={"Origin": url}) as http:
        kept = []
        for _ in range(count):
            try:
                kept.append(await http.ws_connect(f"{url}/ws"))
            except aiohttp.WSServerHandshakeError as refused:
                assert refused.status == 503
        print(len(kept), flush=True)
        await asyncio.gather(*(tab.receive() for tab in kept))
asyncio.run(main())
"""


async def test_one_user_cannot_keep_all_tabs_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web, "TABS_MOST", 4)
    async with (
        serving_here(DASHBOARD) as url,
        aiohttp.ClientSession(headers={"Origin": url}) as http,
    ):
        command = another_user(USER, sys.executable, "-c", TABS, url, "6")
        theirs = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, env=environment("/")
        )
        assert theirs.stdout is not None
        assert await theirs.stdout.readline() == b"4\n"  # two were refused
        ours = [await http.ws_connect(f"{url}/ws") for _ in range(2)]
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):  # half of them is ours
            await http.ws_connect(f"{url}/ws")
        for tab in ours:
            with pytest.raises(asyncio.TimeoutError):
                await tab.receive(timeout=0.5)
        theirs.kill()
        await theirs.wait()


async def test_a_tab_that_closes_before_its_dashboard_has_started_is_not_talked_of() -> None:
    said: list[str] = []
    async with (
        serving_here(DASHBOARD, said) as url,
        aiohttp.ClientSession(headers={"Origin": url}) as http,
    ):
        for _ in range(4):
            await (await http.ws_connect(f"{url}/ws")).close()
    assert said == []


async def test_a_dashboard_that_dies_is_told_in_a_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said: list[str] = []
    async with (
        serving_here("exit 3", said) as url,
        aiohttp.ClientSession(headers={"Origin": url}) as http,
    ):
        for _ in range(3):
            tab = await http.ws_connect(f"{url}/ws")
            while not tab.closed:
                await tab.receive(timeout=LIMIT_S)
    assert said == ["a dashboard has ended with exit code 3"]
    assert "failed to start" not in caplog.text


async def test_a_dashboard_whose_reader_was_cancelled_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """textual-serve cancels it where the process ends before it has begun to read."""

    async def cancelled(service: AppService) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(AppService, "stop", cancelled)
    said: list[str] = []
    async with (
        serving_here("exec 1>&-; sleep 0.3; exit 3", said) as url,
        aiohttp.ClientSession(headers={"Origin": url}) as http,
    ):
        tab = await http.ws_connect(f"{url}/ws")
        while not tab.closed:
            await tab.receive(timeout=LIMIT_S)
    assert said == ["a dashboard has ended with exit code 3"]


# -- parts


@pytest.mark.parametrize(
    ("family", "server", "client"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
    ],
)
def test_a_peer_on_this_machine_is_the_user_whose_socket_it_is(
    family: socket.AddressFamily, server: str, client: str
) -> None:
    try:
        listening = socket.create_server((server, 0), family=family, dualstack_ipv6=server == "::")
    except OSError:
        pytest.skip("no IPv6 here")
    port = listening.getsockname()[1]
    code = """
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(1)
"""
    with listening:
        command = another_user(USER, sys.executable, "-c", code, client, str(port))
        with subprocess.Popen(command) as process:
            theirs, _ = listening.accept()
            with theirs:
                found = peer_of(theirs.getpeername()[:2], theirs.getsockname()[:2])
            process.wait(LIMIT_S)
        with socket.create_connection((client, port)), listening.accept()[0] as ours:
            mine = peer_of(ours.getpeername()[:2], ours.getsockname()[:2])
    assert (found, mine) == (f"user {USER}", f"user {os.getuid()}")


def test_a_peer_elsewhere_is_its_address() -> None:
    assert peer_of(("192.0.2.7", 5), ("192.0.2.1", 80)) == "192.0.2.7"
    assert peer_of(("::ffff:192.0.2.7", 5), ("::", 80)) == "192.0.2.7"
    assert peer_of(("2001:db8::1:7", 5), ("2001:db8::9", 80)) == "2001:db8::/64"
    assert peer_of(("127.0.0.1", 1), ("127.0.0.1", 2)) == "this machine"  # it has gone


def test_who_has_the_most_loses_the_oldest() -> None:
    assert oldest_of_the_largest({1: "a", 2: "b", 3: "b", 4: "a", 5: "b"}) == 2
    assert oldest_of_the_largest({1: "a", 2: "b"}) == 1


def test_a_sentence_is_said_once_in_a_while() -> None:
    said: list[str] = []
    logged = web.Log(said.append)
    for number in range(1000):
        logged("again")
        logged(f"another {number}")
    assert said.count("again") < 10
    assert len(said) < 1010
