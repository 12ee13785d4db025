"""One GET against servers that hang, trickle, lie and flood."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.certificates import Pair, certificate
from support.exporter_servers import (
    Talk,
    answer,
    hangs,
    listening,
    says,
    trickles,
    zipped,
)
from support.free_ports import free_port
from support.requirements import needs

from tpusmi.fleet.http import name_lookup
from tpusmi.fleet.http.http_address import server_and_path
from tpusmi.fleet.http.http_config import HttpConfig, read_http_config
from tpusmi.fleet.http.http_reading import HttpAnswer, HttpError, HttpStatusError, get
from tpusmi.fleet.http.name_lookup import NameLookup

MOST = 64 * 1024
pytestmark = [
    pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("no_proxies"),
]


def ask(url: str, config: HttpConfig | None = None, within_s: float = 30.0) -> HttpAnswer:
    server, path = server_and_path(url)
    until_s = time.monotonic() + within_s
    return get(server, path, config or read_http_config(None), until_s, MOST)


def why(talk: Talk, within_s: float = 30.0) -> str:
    """The sentence about a server that does this."""
    with listening(talk) as server, pytest.raises(HttpError) as failed:
        ask(f"http://{server}/metrics", within_s=within_s)
    return str(failed.value)


def test_an_answer_comes_with_its_type() -> None:
    with listening(says(answer("hello", kind="Text/Plain; version=0.0.4"))) as server:
        assert ask(f"http://{server}/metrics?a=b") == HttpAnswer(b"hello", "text/plain")
        head = server.asked[0].decode()
    assert head.startswith("GET /metrics?a=b HTTP/1.1\r\n")
    assert f"Host: {server}\r\n" in head


def test_compressed_and_chunked_answers_are_read() -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    )
    without_length = b"HTTP/1.0 200 OK\r\n\r\nhello"
    for data in (zipped("hello"), chunked, without_length):
        with listening(says(data)) as server:
            assert ask(f"http://{server}").body == b"hello"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (answer("", "302 Found", Location="https://u:secret@login/x?token=secret"),
         "it redirects to login/x, which is not followed"),
        (answer("", "401 Unauthorized"), "it wants a password: see --http-config"),
        (answer("", "403 Forbidden"), "it refuses the request (403)"),
        (answer("", "500 \x1b[31mOh no"), "it answers with status 500 ([31mOh no)"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak HTTP; does it speak https:// only?"),
        (b"", "it closes the connection without an answer; does it speak https:// only?"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "its answer ends too early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
         "its answer is broken off, or not HTTP"),
        (answer(b"no gzip", Content_Encoding="gzip"), "its answer is broken off, or not HTTP"),
        (zipped("hello" * 99)[:-8], "its answer ends too early"),
        (answer(gzip.compress(b"x" * 999)[:-9], Content_Encoding="gzip"),
         "its answer ends too early"),
        (answer("", Content_Encoding="br"), "its answer is compressed with br"),
        (answer("x" * (MOST + 1)), "its answer is longer than 64 KiB"),
        (zipped("x" * 50_000_000), "its answer is longer than 64 KiB"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
         "its answer is broken off, or not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 2000 + b"\r\n",
         "its answer is broken off, or not HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "its answer is too long"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_used_end_in_a_sentence(data: bytes, sentence: str) -> None:
    assert why(says(data)) == sentence


def test_a_server_that_sends_without_an_end_is_left() -> None:
    def floods(connected: socket.socket, _: bytes) -> None:
        connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            connected.sendall(b"x" * 65536)

    assert why(floods) == "its answer is longer than 64 KiB"


@pytest.mark.parametrize(
    "talk",
    [
        hangs,
        trickles(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + b"x" * 99),
        trickles(b"H" * 99),
        lambda c, _: (c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), hangs(c, _)),
        lambda c, _: (
            c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            trickles(b"1\r\nx\r\n" * 30)(c, _),
        ),
        trickles(answer("x", "401 Unauthorized")),
    ],
)
def test_no_server_stretches_the_time(talk: Talk) -> None:
    began_s = time.monotonic()
    assert why(talk, within_s=0.4) == "it does not answer in time"
    assert time.monotonic() - began_s < 5.0


def test_a_handshake_byte_by_byte_does_not_stretch_the_time() -> None:
    def handshake(server: socket.socket) -> None:
        connected, _ = server.accept()
        with connected:
            connected.recv(1)
            for byte in b"\x16\x03\x03\x40\x00" + b"x" * 99:
                try:
                    connected.sendall(bytes([byte]))
                except OSError:
                    return
                time.sleep(0.2)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=handshake, args=(server,), daemon=True)
        thread.start()
        began_s = time.monotonic()
        with pytest.raises(HttpError, match="does not answer in time"):
            ask(f"https://127.0.0.1:{server.getsockname()[1]}", within_s=0.4)
        assert time.monotonic() - began_s < 15
        thread.join(10)


def test_a_connection_that_is_never_accepted_is_given_up() -> None:
    """Its backlog is full: the kernel answers no handshake."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        began_s = time.monotonic()
        with pytest.raises(HttpError, match="does not answer in time"):
            ask(f"http://127.0.0.1:{address[1]}", within_s=0.4)
        assert time.monotonic() - began_s < 15
        for one in waiting:
            one.close()


def test_a_port_without_a_server_says_so() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(HttpError, match="nothing listens there"):
            ask(f"http://127.0.0.1:{bound.getsockname()[1]}")


def test_a_refusal_has_its_status_and_the_beginning_of_its_body() -> None:
    with (
        listening(says(answer("x" * 100_000, "422 Unprocessable"))) as server,
        pytest.raises(HttpStatusError) as failed,
    ):
        ask(f"http://{server}")
    assert (failed.value.status, failed.value.body) == (422, b"x" * 65536)


# -- passwords and certificates


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def context(pair: Pair) -> Iterator[ssl.SSLContext]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


def configured(directory: Path, text: str) -> HttpConfig:
    path = directory / "http.yml"
    path.write_text(text)
    path.chmod(0o600)
    return read_http_config(str(path))


def test_the_password_of_the_configuration_is_sent(tmp_path: Path) -> None:
    config = configured(tmp_path, "basic_auth: {username: me, password: s3cret}")
    with listening(says(answer("hello"))) as server:
        assert ask(f"http://{server}", config).body == b"hello"
        assert b"Authorization: Basic bWU6czNjcmV0\r\n" in server.asked[0]


def test_a_wrong_password_is_not_called_a_missing_one(tmp_path: Path) -> None:
    config = configured(tmp_path, "basic_auth: {username: me, password: wrong}")
    with (
        listening(says(answer("", "401 Unauthorized"))) as server,
        pytest.raises(HttpError, match=r"^it does not accept the credentials of --http-config$"),
    ):
        ask(f"http://{server}", config)


@needs("openssl")
def test_a_certificate_of_an_unknown_authority_names_what_to_do(
    context: ssl.SSLContext, pair: Pair, tmp_path: Path
) -> None:
    with listening(says(answer("hello")), context=context) as server:
        with pytest.raises(HttpError, match=r"unknown authority .* ca_file in --http-config"):
            ask(f"https://{server}")
        config = configured(tmp_path, f"tls_config: {{ca_file: {pair.cert}}}")
        assert ask(f"https://{server}", config).body == b"hello"
        with pytest.raises(HttpError, match=r"its certificate is not valid: .*localhost"):
            ask(f"https://localhost:{server.port}", config)


def test_https_on_a_port_without_it_says_so() -> None:
    with (
        listening(says(answer("hello"))) as server,
        pytest.raises(HttpError, match=r"TLS fails: .*does it speak http:// only\?"),
    ):
        ask(f"https://{server}")


# -- proxies


def test_a_request_goes_through_the_proxy_of_the_configuration(tmp_path: Path) -> None:
    with listening(says(answer("by proxy"))) as proxy:
        config = configured(tmp_path, f"proxy_url: http://me:s3cret@{proxy}")
        assert ask("http://worker-0.invalid:8781/metrics", config).body == b"by proxy"
        head = proxy.asked[0].decode()
    assert head.startswith("GET http://worker-0.invalid:8781/metrics HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6czNjcmV0\r\n" in head


@needs("openssl")
def test_https_goes_through_a_tunnel(context: ssl.SSLContext, pair: Pair, tmp_path: Path) -> None:
    def tunnels(client: socket.socket, head: bytes) -> None:
        assert head.startswith(b"CONNECT worker-0.invalid:443 HTTP/1.1\r\n")
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with context.wrap_socket(client, server_side=True) as inner:
            inner.recv(65536)
            inner.sendall(answer("inside"))

    with listening(tunnels) as proxy:
        text = f"tls_config: {{ca_file: {pair.cert}, server_name: 127.0.0.1}}"
        config = configured(tmp_path, f"proxy_url: http://{proxy}\n{text}")
        assert ask("https://worker-0.invalid", config).body == b"inside"
    with listening(says(answer("", "407 Proxy Authentication Required"))) as proxy:
        config = configured(tmp_path, f"proxy_url: http://{proxy}")
        with pytest.raises(HttpError, match=f"the proxy {proxy} answers with status 407"):
            ask("https://worker-0.invalid", config)


def test_a_proxy_that_cannot_be_reached_is_named_and_not_the_server(tmp_path: Path) -> None:
    port = free_port()
    for url in ("http://worker-0.invalid", "https://worker-0.invalid"):
        config = configured(tmp_path, f"proxy_url: http://me:s3cret@127.0.0.1:{port}")
        with pytest.raises(HttpError) as refused:
            ask(url, config)
        assert str(refused.value) == (
            f"the proxy 127.0.0.1:{port}: nothing listens there (connection refused)"
        )
    config = configured(tmp_path, "proxy_url: http://no-such-proxy.invalid:3128")
    with pytest.raises(HttpError, match=r"the proxy no-such-proxy.invalid:3128: the name"):
        ask("http://worker-0.invalid", config)


# -- names


def test_a_resolver_that_hangs_delays_only_those_who_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    real = socket.getaddrinfo

    def slow(host: str, *more: object, **named: object) -> object:
        if host == "slow.invalid":
            release.wait(30)
        return real("localhost", *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    lookup = NameLookup()
    began_s = time.monotonic()
    with pytest.raises(TimeoutError, match=r"the lookup of the name slow\.invalid takes too long"):
        lookup.places("slow.invalid", time.monotonic() + 0.1)
    assert lookup.places("127.0.0.1", time.monotonic())[0].host == "127.0.0.1"
    assert lookup.places("fast.invalid", time.monotonic() + 30)
    assert time.monotonic() - began_s < 15
    release.set()
    assert lookup.places("slow.invalid", time.monotonic() + 30)


@pytest.mark.parametrize("name", ["a..b", "a" * 64])
def test_what_cannot_be_a_name_is_a_sentence_without_a_codec(name: str) -> None:
    with pytest.raises(OSError, match=f"the name {name} cannot be looked up: no host can have it"):
        NameLookup().places(name, time.monotonic() + 60)


def test_a_lookup_that_had_no_memory_ends_and_is_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [MemoryError(), OSError("again")]

    def without_memory(*asked: object, **more: object) -> None:
        raise found.pop(0)

    monkeypatch.setattr(socket, "getaddrinfo", without_memory)
    monkeypatch.setattr(name_lookup, "FAILURE_KEPT_S", 0.0)
    lookup = NameLookup()
    for why in ("MemoryError", "again"):
        with pytest.raises(OSError, match=f"^the name exporter cannot be looked up: {why}$"):
            lookup.places("exporter", time.monotonic() + 60)


def test_a_name_that_does_not_exist_says_so() -> None:
    with pytest.raises(HttpError, match=r"the name nosuch\.invalid cannot be looked up: "):
        ask("http://nosuch.invalid")
