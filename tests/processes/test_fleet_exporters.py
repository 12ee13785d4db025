"""`tpusmi fleet --hosts` over real exporters: their numbers, a certificate, and hosts that stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import bcrypt
import pytest
from support.certificates import certificate
from support.commands import TPUSMI, environment, tpusmi
from support.requirements import needs
from support.scrapers import LIMIT_S, Exporting, exporting, get
from support.waits import until

from tpusmi.fleet.exporters import exporter_record, exporters_fleet
from tpusmi.fleet.exporters.exporters_fleet import ExporterFleet
from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.model import Host

SECRET = "s3cret-of-the-test"
DEAD = "127.0.0.1:9"


class Two(NamedTuple):
    """Exporters on one port of two addresses."""

    first: Exporting
    second: Exporting

    @property
    def addresses(self) -> list[str]:
        return [one.base.removeprefix("http://") for one in self]


@pytest.fixture(scope="module")
def exporters(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    a, b = (tmp_path_factory.mktemp(name) for name in "ab")
    words = ("--simulate", host.root, "--slice", "pod-7", "--host-name")
    with exporting(a, *words, "vm-1") as first:
        more = ("--bind", "127.0.0.2")
        with exporting(b, *words, "vm-2", *more, port=first.port) as second:
            for one in (first, second):
                one.wait_until_ready()
                until(lambda url=one.url: "process_steps_total" in get(url).text, LIMIT_S, "steps")
            yield Two(first, second)


def fleet_json(directory: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> Any:
    done = subprocess.run(
        [*prefix, *TPUSMI, "fleet", "--json", *arguments],
        env=environment(directory),
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def states(snapshot: Any) -> dict[str, str]:
    return {host["name"]: host["state"] for host in snapshot["hosts"]}


def test_the_command_shows_what_the_exporters_have(
    exporters: Two, host: Host, tmp_path: Path
) -> None:
    began_s = time.monotonic()
    found = fleet_json(tmp_path, "--hosts", ",".join([*exporters.addresses, DEAD]))
    assert time.monotonic() - began_s < LIMIT_S / 2
    assert states(found) == {"vm-1": "live", "vm-2": "live", DEAD: "down"}
    own = json.loads(tpusmi(tmp_path, "--json", "--simulate", host.root).stdout)
    used = {d["hbm_used_bytes"] for d in own["devices"]}
    with closing(ExporterFleet(exporters.addresses[0], None)) as source:
        (read,) = source.snapshot().hosts
        full = source.details(read)
    assert {d.values["hbm_used_bytes"] for d in read.devices} == used
    assert (read.name, read.slice, read.chips, read.simulated) == ("vm-1", "pod-7", 4, True)
    assert read.processes[0].values["steps"] > 0
    assert full.devices[0].values.keys() > read.devices[0].values.keys()


def test_all_addresses_of_a_name_are_asked(exporters: Two, tmp_path: Path) -> None:
    """As those of a headless service: the system's own resolver gives them."""
    if os.getuid():
        pytest.skip("only root can give itself another /etc/hosts")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost workers.test\n127.0.0.2 workers.test\n")
    script = f'mount --bind {hosts} /etc/hosts && exec "$@"'
    prefix = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh")
    found = fleet_json(tmp_path, "--hosts", f"@workers.test:{exporters.first.port}", prefix=prefix)
    assert states(found) == {"vm-1": "live", "vm-2": "live"}


def test_an_exporter_that_stops_is_old_and_delays_nobody(
    exporters: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its port still accepts connections: the kernel does that for it."""

    def of(name: str) -> FleetHost:
        return next(h for h in source.snapshot().hosts if h.name == name)

    monkeypatch.setattr(exporters_fleet, "ANSWER_S", 1.0)
    monkeypatch.setattr(exporter_record, "GRACE_S", 0.0)
    monkeypatch.setattr(exporter_record, "AGAIN_S", 0.1)
    with closing(ExporterFleet(",".join(exporters.addresses), None)) as source:
        assert of("vm-2").state is HostState.LIVE
        os.kill(exporters.second.process.pid, signal.SIGSTOP)
        try:
            until(lambda: of("vm-2").state is HostState.OLD, LIMIT_S, "it is old")
            assert of("vm-2").reason == "it does not answer in time"
            assert of("vm-2").devices
            began_s = time.monotonic()
            assert of("vm-1").state is HostState.LIVE
            assert time.monotonic() - began_s < LIMIT_S / 2
        finally:
            os.kill(exporters.second.process.pid, signal.SIGCONT)
        until(lambda: of("vm-2").state is HostState.LIVE, LIMIT_S, "it is back")


@needs("openssl")
def test_a_certificate_and_a_password_are_asked_for_and_given(host: Host, tmp_path: Path) -> None:
    pair = certificate(tmp_path)
    hashed = bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(4, prefix=b"2b")).decode()
    web = tmp_path / "web.yml"
    web.write_text(
        f"tls_server_config: {{cert_file: {pair.cert}, key_file: {pair.key}}}\n"
        f"basic_auth_users: {{me: {hashed}}}\n"
    )
    http = tmp_path / "http.yml"

    def reason() -> str:
        path = str(http) if http.exists() else None
        with closing(ExporterFleet(exporter.url, path)) as source:
            return source.snapshot().hosts[0].reason

    with exporting(tmp_path, "--simulate", host.root, "--web-config", str(web)) as exporter:
        assert "unknown authority" in reason()
        assert "see ca_file in --http-config" in reason()
        http.write_text(f"tls_config: {{ca_file: {pair.cert}}}\n")
        http.chmod(0o600)
        assert reason() == "it wants a password: see --http-config"
        with http.open("a") as file:
            file.write(f"basic_auth: {{username: me, password: {SECRET}}}\n")
        assert reason() == ""
        plain = exporter.url.replace("https://", "http://")
        with closing(ExporterFleet(plain, str(http))) as source:
            assert "https:// only?" in source.snapshot().hosts[0].reason
