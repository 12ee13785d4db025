"""The exporters of a simulated fleet: a process that serves the text of each on a port of its own.

    python exposition_servers.py SPEC HANGING

It prints the ports, those of HANGING exporters that accept and never answer last, and serves until
its standard input ends.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from support.backfilled_prometheus import line_of
from tpusmi.fleet.simulated.simulated_samples import host_samples
from tpusmi.simulate.fleet_job import job_at
from tpusmi.simulate.fleet_members import FleetMember, members
from tpusmi.simulate.fleet_spec import slices_of

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


def text_of(member: FleetMember, at_s: float) -> bytes:
    """What the exporter of that host answers at that time."""
    found = host_samples(member, at_s, job_at(member.slice, at_s))
    return "".join(f"{line_of(sample)}\n" for sample in found).encode()


def server_of(member: FleetMember) -> ThreadingHTTPServer:
    """The exporter of a host, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = text_of(member, time.time())
            self.send_response(200)
            self.send_header("Content-Type", MEDIA)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextmanager
def exporters(spec: str, hanging: int) -> Iterator[Sequence[str]]:
    """Their addresses, those that never answer last."""
    process = subprocess.Popen(
        [sys.executable, __file__, spec, str(hanging)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield [f"127.0.0.1:{port}" for port in json.loads(process.stdout.readline())]
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait(60)


def main() -> None:
    """Serve until the one who started it is done."""
    spec, hanging = sys.argv[1], int(sys.argv[2])
    hosts = members(slices_of(spec))
    servers = [server_of(m) for m in hosts[: len(hosts) - hanging]]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    silent = [socket.create_server(("127.0.0.1", 0), backlog=16) for _ in range(hanging)]
    ports = [server.server_address[1] for server in servers]
    ports += [one.getsockname()[1] for one in silent]
    sys.stdout.write(f"{json.dumps(ports)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
