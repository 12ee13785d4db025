"""`tpusmi serve-tui` without a browser: what it says, whom it answers, that it leaves nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.commands import tpusmi
from support.simulated_hosts import host_of
from support.waits import until
from support.web_servers import LIMIT_S, Serving, serving, serving_here

from tpusmi.cli import serve_tui
from tpusmi.model import Host
from tpusmi.web import server as web

LAST_DEVICE = "tpu:7"

host = host_of("v5e-8")


@pytest.fixture
def server(tmp_path: Path, host: Host) -> Iterator[Serving]:
    with serving(tmp_path, "--simulate", host.root) as found:
        yield found


async def opened(http: aiohttp.ClientSession, server: Serving, **headers: str) -> Any:
    """The way to a new dashboard, as the server's own page opens it."""
    headers.setdefault("Origin", f"http://127.0.0.1:{server.port}")
    return await http.ws_connect(f"{server.url}ws?width=120&height=35", headers=headers)


async def soon(what: Callable[[], object], name: str) -> None:
    """Wait until that is so, while tabs go on."""
    await asyncio.to_thread(until, what, LIMIT_S, name)


async def see(tab: Any, text: str) -> None:
    """Wait until the dashboard has written this."""
    seen = ""
    while text not in seen:
        message = await tab.receive(timeout=LIMIT_S)
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), (message, seen)
        seen += message.data.decode() if isinstance(message.data, bytes) else message.data


async def status_of(http: aiohttp.ClientSession, url: str) -> int:
    """What the server says to a tab that is closed at once."""
    try:
        await (await http.ws_connect(url)).close()
    except aiohttp.WSServerHandshakeError as refused:
        return refused.status
    return 101


async def closed(tab: Any) -> None:
    """Wait until the server has closed it."""
    frames = (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.PING)
    while (await tab.receive(timeout=LIMIT_S)).type in frames:
        pass
    assert tab.closed


# -- what it says


def test_it_says_its_address_on_stderr_and_binds_to_this_machine_only(server: Serving) -> None:
    assert server.said == f"tpusmi: http://127.0.0.1:{server.port}/  (Ctrl-C ends it)\n"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=LIMIT_S)


@pytest.mark.parametrize(
    ("flags", "words"), [((), "can watch this host, un"), (("--allow-kill",), "end processes")]
)
def test_it_warns_when_others_can_reach_it(
    tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    with serving(tmp_path, "--host", "0.0.0.0", *flags) as server:
        warning, address = server.said.splitlines()
        assert warning.startswith("tpusmi: warning: anyone who reaches 0.0.0.0 can ")
        assert words in warning
        assert f"http://{socket.gethostname()}:{server.port}/" in address
        assert server.end(signal.SIGTERM) == 0


def test_a_port_in_use_is_told_in_a_sentence(tmp_path: Path, server: Serving) -> None:
    found = tpusmi(tmp_path, "serve-tui", "--port", str(server.port))
    assert found.returncode == 5
    assert found.stdout == ""
    where = f"127.0.0.1, port {server.port}"
    assert found.stderr == f"tpusmi: {where} is in use: choose another --port\n"


def test_an_address_that_is_not_this_machines_is_told_in_a_sentence(tmp_path: Path) -> None:
    found = tpusmi(tmp_path, "serve-tui", "--host", "192.0.2.1", "--port", "0")
    assert found.returncode == 2
    # asyncio of 3.13 has no errno for it.
    why = "(Cannot assign requested address|could not bind on any address .*)"
    assert re.search(f"cannot listen on 192.0.2.1, port 0: {why}\n$", found.stderr)
    assert len(found.stderr.splitlines()) == 1  # no warning: nobody can reach it


@pytest.mark.parametrize(
    "flags",
    [
        "--json",
        "--loop 1",
        "-L",
        "--query-tpu=index",
        "--pid x",
        "--port 70000",
        "--host=",
        "--nonsense",
    ],
)
def test_what_no_browser_can_show_is_wrong_usage(tmp_path: Path, flags: str) -> None:
    found = tpusmi(tmp_path, "serve-tui", "--port", "0", *flags.split())
    assert found.returncode == 2
    assert found.stderr.startswith("tpusmi serve-tui: error: ")


def test_its_garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command starts without: it lets short commands end before they have made any."""
    is_on = []

    async def serve(*_: object) -> int:
        is_on.append(gc.isenabled())
        return 0

    monkeypatch.setattr(web, "serve", serve)
    gc.disable()
    try:
        assert serve_tui.run(["--port", "0"]) == 0
    finally:
        gc.enable()
    assert is_on == [True]


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    """A Python that has none: the finder of modules is asked, and says so."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'textual_serve' "
        "else find(name, *a)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, map(os.path.abspath, sys.path))])
    found = tpusmi(tmp_path, "serve-tui", "--port", "0", PYTHONPATH=path)
    assert found.returncode == 1
    assert found.stderr == (
        "tpusmi: textual-serve is not installed here: pip install 'tpusmi[web]'\n"
    )


# -- whom it answers


async def test_a_page_of_somebody_elses_cannot_drive_a_dashboard(server: Serving) -> None:
    async with aiohttp.ClientSession() as http:
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": "null"},
            {"Origin": f"http://evil.example:{server.port}", "Host": f"evil.example:{server.port}"},
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await opened(http, server, **headers)
            assert refused.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):  # nobody's page
            await http.ws_connect(f"{server.url}ws")
    assert server.dashboards == []


async def test_nothing_is_answered_under_a_name_that_is_not_its_own(server: Serving) -> None:
    async with aiohttp.ClientSession() as http:
        for path in ("", "static/js/textual.js", "page/page.js", "download/x", "nowhere"):
            headers = {"Host": f"evil.example:{server.port}"}
            async with http.get(f"{server.url}{path}", headers=headers) as answer:
                assert answer.status == 403


async def test_no_page_may_put_it_into_a_frame(server: Serving) -> None:
    async with aiohttp.ClientSession() as http, http.get(server.url) as answer:
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_one_that_can_end_processes_answers_only_who_knows_its_address(
    tmp_path: Path, host: Host
) -> None:
    """Other users of this machine reach its port, too."""
    with serving(tmp_path, "--simulate", host.root, "--allow-kill") as server:
        secret = server.url.rstrip("/").rpartition("/")[2]
        assert len(secret) > 20
        base = f"http://127.0.0.1:{server.port}"
        async with aiohttp.ClientSession() as http:
            for path in ("/", "/ws", "/page/page.js", f"/{secret[:-1]}/ws", "//ws"):
                async with http.get(f"{base}{path}", headers={"Origin": base}) as answer:
                    assert answer.status == 404
            async with await opened(http, server) as tab:
                await see(tab, LAST_DEVICE)


def own_page(url: str) -> aiohttp.ClientSession:
    """What the page from there can ask for."""
    return aiohttp.ClientSession(headers={"Origin": url})


ENDS_WHEN_TOLD = "exec head -c 1"
"""It reads what it is told, the first byte of which ends it."""


async def test_there_is_a_limit_to_the_dashboards(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 4 <= web.TABS_MOST <= 32
    monkeypatch.setattr(web, "TABS_MOST", 2)
    async with serving_here(ENDS_WHEN_TOLD) as url, own_page(url) as http:
        tabs = [await http.ws_connect(f"{url}/ws") for _ in range(2)]
        assert await status_of(http, f"{url}/ws") == 503
        await tabs[0].send_json(["stdin", "q"])
        await closed(tabs[0])
        for _ in range(200):  # the tab is counted out a moment later
            if (status := await status_of(http, f"{url}/ws")) != 503:
                break
            await asyncio.sleep(0.05)
        assert status == 101


async def test_a_tab_that_does_not_answer_any_more_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A laptop that was closed says nothing."""
    assert 5 <= web.HEARTBEAT_S <= 30
    monkeypatch.setattr(web, "HEARTBEAT_S", 0.2)
    async with serving_here(ENDS_WHEN_TOLD) as url, own_page(url) as http:
        tab = await http.ws_connect(f"{url}/ws", autoping=False)
        await closed(tab)


# -- a tab and its dashboard


async def test_each_tab_has_a_dashboard_which_ends_with_it(server: Serving) -> None:
    async with aiohttp.ClientSession() as http:
        first, second = await opened(http, server), await opened(http, server)
        await see(first, LAST_DEVICE)
        await see(second, LAST_DEVICE)
        await soon(lambda: len(server.dashboards) == 2, "each has its own")
        await first.close()
        await soon(lambda: len(server.dashboards) == 1, "the first ends")
        await second.send_json(["stdin", "?"])
        await see(second, "of the main page")


async def test_a_connection_that_breaks_ends_its_dashboard(server: Serving) -> None:
    async with aiohttp.ClientSession() as http:
        tab = await opened(http, server)
        await see(tab, LAST_DEVICE)
        tab._response.connection.transport.abort()
        await soon(lambda: server.dashboards == [], "it ends")


@pytest.mark.parametrize(
    "said",
    ["no JSON", "{}", "null", '["stdin"]', '["stdin", 7]', '["resize", [1, 2]]', '["deliver"]'],
)
async def test_who_talks_otherwise_than_its_page_is_dropped(server: Serving, said: str) -> None:
    async with aiohttp.ClientSession() as http:
        tab = await opened(http, server)
        await see(tab, LAST_DEVICE)
        await tab.send_str(said)
        await closed(tab)
    await soon(lambda: server.dashboards == [], "it ends")


async def test_a_dashboard_that_dies_closes_its_tab(server: Serving) -> None:
    async with aiohttp.ClientSession() as http:
        tab = await opened(http, server)
        await see(tab, LAST_DEVICE)
        (pid,) = server.dashboards
        os.kill(pid, signal.SIGKILL)
        await closed(tab)


async def test_a_dashboard_that_hangs_is_killed_when_its_tab_is_closed(server: Serving) -> None:
    async with aiohttp.ClientSession() as http:
        tab = await opened(http, server)
        await see(tab, LAST_DEVICE)
        (pid,) = server.dashboards
        os.kill(pid, signal.SIGSTOP)
        await tab.close()
        await soon(lambda: server.dashboards == [], "it is killed")


# -- its end


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 0),
        (signal.SIGHUP, 0),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
async def test_nothing_is_left_of_it_after_a_signal(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with serving(tmp_path, "--simulate", "v5e-8") as server:
        async with aiohttp.ClientSession() as http:
            tabs = [await opened(http, server) for _ in range(2)]
            for tab in tabs:
                await see(tab, LAST_DEVICE)
            await soon(lambda: len(server.dashboards) == 2, "each has its own")
            assert server.end(number) == code
        # Killed by SIGKILL it cannot wait for anybody.
        if number != signal.SIGKILL:
            assert server.processes == []
        await soon(lambda: server.processes == [], "nothing is left")
        assert server.process.stdout is not None
        assert server.process.stdout.read() == ""


async def test_it_ends_while_a_dashboard_hangs_and_its_tab_reads_nothing(
    tmp_path: Path, host: Host
) -> None:
    with serving(tmp_path, "--simulate", host.root) as server:
        async with aiohttp.ClientSession() as http:
            tab = await opened(http, server)
            await see(tab, LAST_DEVICE)
            os.kill(server.dashboards[0], signal.SIGSTOP)
            assert server.end(signal.SIGTERM) == 0
        assert server.processes == []
