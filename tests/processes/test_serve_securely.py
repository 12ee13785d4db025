"""`tpusmi serve` with a certificate and passwords: by Prometheus, and against clients without."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import bcrypt
import pytest
from support.certificates import Pair, certificate
from support.clocks import Stopwatch
from support.commands import tpusmi
from support.requirements import needs
from support.scrapers import LIMIT_S, Exporting, basic, exporting, get, job, prometheus
from support.waits import until

from tpusmi.exporter.accepting import HANDSHAKE_S
from tpusmi.model import Host
from tpusmi.simulate.host import HostPlan, start
from tpusmi.web.connections import CONNECTIONS_MOST

pytestmark = needs("openssl")
USER, PASSWORD = "scraper", "s3cret-of-the-test"


class Guarded(NamedTuple):
    """An exporter that needs a password, and what a client of it needs."""

    exporter: Exporting
    pair: Pair
    context: ssl.SSLContext
    config: Path


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with start(HostPlan("v5e-1", freeze_s=60.0)) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("tls")
    pair = certificate(directory)
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10, prefix=b"2b")).decode()
    config = directory / "web.yml"
    config.write_text(
        f"tls_server_config:\n  cert_file: {pair.cert.name}\n  key_file: {pair.key.name}\n"
        f"basic_auth_users:\n  {USER}: {hashed}\n"
    )
    words = ("--simulate", host.root, "--web.config.file", str(config), "--bind", "127.0.0.1")
    context = ssl.create_default_context(cafile=str(pair.cert))
    with exporting(directory, *words) as found:
        found.wait_until_ready(context)
        yield Guarded(found, pair, context, config)


def test_only_a_client_with_the_password_gets_numbers(guarded: Guarded) -> None:
    url, context = guarded.exporter.url, guarded.context
    assert url.startswith("https://127.0.0.1:")
    for headers in ({}, {"Authorization": basic(USER, "wrong")}, {"Authorization": basic("", "")}):
        for path in ("", "/../", "x"):
            answer = get(url + path, context, **headers)
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == 'Basic realm="tpusmi", charset="UTF-8"'
            assert answer.text == "Unauthorized\n"
    answer = get(url, context, Authorization=basic(USER, PASSWORD))
    assert answer.status == 200
    assert "tpusmi_chip_info{" in answer.text
    assert get(f"{guarded.exporter.base}/-/healthy", context).status == 200
    assert get(f"{guarded.exporter.base}/", context).status == 401


@needs("promtool")
def test_prometheus_reads_the_same_file(guarded: Guarded) -> None:
    import subprocess

    done = subprocess.run(
        ["promtool", "check", "web-config", guarded.config], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@needs("prometheus")
def test_prometheus_scrapes_it_with_the_password_and_not_without(
    guarded: Guarded, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{guarded.exporter.port}"
    tls = {"scheme": "https", "tls_config": {"ca_file": str(guarded.pair.cert)}}
    right = job(address, basic_auth={"username": USER, "password": PASSWORD}, **tls)
    wrong = job(address, basic_auth={"username": USER, "password": "x"}, **tls)
    with prometheus(tmp_path, [right, {**wrong, "job_name": "wrong"}]) as server:
        server.wait_until('up{job="tpusmi"} == 1')
        server.wait_until('up{job="wrong"} == 0')
        assert len(server.query("tpusmi_chip_info")) == 1
        until(
            lambda: any("401" in error for _, error in server.targets().values()),
            LIMIT_S,
            "a target that is refused",
        )


def test_no_secret_is_in_its_command_line_its_environment_or_its_messages(
    host: Host, guarded: Guarded
) -> None:
    process = Path(f"/proc/{guarded.exporter.process.pid}")
    for name in ("cmdline", "environ", "comm"):
        text = (process / name).read_bytes()
        assert PASSWORD.encode() not in text
        assert b"$2b$" not in text
    assert PASSWORD not in guarded.exporter.said


def test_a_request_without_tls_gets_nothing(guarded: Guarded) -> None:
    with socket.create_connection(("127.0.0.1", guarded.exporter.port), timeout=LIMIT_S) as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            answer = one.recv(4096)
        except ConnectionError:
            answer = b""
    assert b"HTTP" not in answer


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_an_old_version_of_tls_is_refused(guarded: Guarded) -> None:
    context = ssl.create_default_context(cafile=str(guarded.pair.cert))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", guarded.exporter.port), timeout=LIMIT_S) as one,
        pytest.raises(OSError),  # noqa: PT011  # an alert, or a closed connection
    ):
        context.wrap_socket(one, server_hostname="127.0.0.1")


def test_handshakes_that_never_end_keep_no_scrape_out(guarded: Guarded) -> None:
    with ExitStack() as meanwhile:
        for _ in range(200):
            one = socket.create_connection(("127.0.0.1", guarded.exporter.port), timeout=LIMIT_S)
            meanwhile.enter_context(one)
        header = basic(USER, PASSWORD)
        with Stopwatch() as scrape:
            answer = get(guarded.exporter.url, guarded.context, Authorization=header)
        assert answer.status == 200
        assert scrape.seconds() < HANDSHAKE_S


def test_finished_scrapes_do_not_end_the_limit_of_connections(guarded: Guarded) -> None:
    """A transport of TLS that is closed no longer knows its socket."""
    header = basic(USER, PASSWORD)
    for _ in range(3):
        assert get(guarded.exporter.url, guarded.context, Authorization=header).status == 200
    descriptors = Path(f"/proc/{guarded.exporter.process.pid}/fd")
    before = len([*descriptors.iterdir()])
    with ExitStack() as meanwhile:
        for _ in range(CONNECTIONS_MOST + 30):
            one = socket.create_connection(("127.0.0.1", guarded.exporter.port), timeout=LIMIT_S)
            wrapped = guarded.context.wrap_socket(one, server_hostname="127.0.0.1")
            meanwhile.enter_context(wrapped)
        opened = len([*descriptors.iterdir()]) - before
        assert CONNECTIONS_MOST / 2 < opened <= CONNECTIONS_MOST + 2
        assert get(guarded.exporter.url, guarded.context, Authorization=header).status == 200
    assert len(guarded.exporter.said.splitlines()) == 1


def test_one_connection_serves_many_scrapes(guarded: Guarded) -> None:
    """As Prometheus keeps it."""
    port = guarded.exporter.port
    one = http.client.HTTPSConnection("127.0.0.1", port, context=guarded.context, timeout=LIMIT_S)
    headers = {"Authorization": basic(USER, PASSWORD)}
    for _ in range(50):
        one.request("GET", "/metrics", headers=headers)
        answer = one.getresponse()
        assert answer.status == 200
        assert answer.read().startswith(b"# HELP")
    one.close()


def test_only_a_client_with_a_certificate_gets_in(host: Host, tmp_path: Path) -> None:
    ours, theirs, stranger = (certificate(tmp_path, name) for name in ("ours", "client", "other"))
    config = tmp_path / "web.yml"
    config.write_text(
        "tls_server_config:\n  cert_file: ours.crt\n  key_file: ours.key\n"
        "  client_ca_file: client.crt\n  client_auth_type: RequireAndVerifyClientCert\n"
    )
    with exporting(tmp_path, "--simulate", host.root, "--web-config", str(config)) as found:
        for pair, is_let_in in ((theirs, True), (stranger, False), (None, False)):
            context = ssl.create_default_context(cafile=str(ours.cert))
            if pair is not None:
                context.load_cert_chain(pair.cert, pair.key)
            try:
                status = get(f"{found.base}/-/healthy", context).status
            except OSError:
                status = 0
            assert status == (200 if is_let_in else 0)


def test_a_file_that_cannot_be_used_ends_the_command_in_a_sentence(
    host: Host, tmp_path: Path
) -> None:
    config = tmp_path / "web.yml"
    config.write_text("basic_auth_users: {ann: hunter2}\n")
    done = tpusmi(tmp_path, "serve", "--simulate", host.root, "--web-config", str(config))
    assert done.returncode == 2
    assert done.stderr == (
        f"tpusmi: {config}: the password of 'ann' is not a bcrypt hash ($2y$…)\n"
    )


def test_it_warns_of_passwords_without_tls(host: Host, tmp_path: Path, guarded: Guarded) -> None:
    hashed = bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode()
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{ann: {hashed}}}\n")
    words = ("--simulate", host.root, "--bind", "0.0.0.0", "--web-config")
    with exporting(tmp_path, *words, str(config)) as found:
        assert found.said.splitlines()[0] == (
            "tpusmi: warning: without tls_server_config, passwords are sent unencrypted"
        )
    with exporting(tmp_path, *words, str(guarded.config)) as found:
        assert len(found.said.splitlines()) == 1
