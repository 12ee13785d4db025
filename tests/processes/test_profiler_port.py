"""`tpusmi.start(profiler_port=…)`: JAX's own server, and its port as a fact."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import environment
from support.free_ports import free_port
from support.jobs import collector, job, seen

import tpusmi

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX here")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def test_the_server_waits_for_a_backend_and_its_port_is_published(directory: Path) -> None:
    code = f"""
    tpusmi.start(interval_s=0.1, profiler_port={free_port()})
    import jax, jax.numpy as jnp
    from jax._src import xla_bridge
    import time; time.sleep(0.5)
    say(bool(xla_bridge._backends)); jnp.ones(3).block_until_ready()
    say("ready"); hear()
    """
    port = int(code.partition("profiler_port=")[2].partition(")")[0])
    with job(directory, code) as serving:
        assert serving.hear() == "False"
        assert serving.hear() == "ready"
        reader = collector(directory)
        snapshot, _ = seen(reader, serving.pid, lambda s, p: p.facts["profiler_port"] == port)
        (row,) = snapshot.to_dict()["processes"]
        assert row["profiler_port"] == port
        socket.create_connection(("127.0.0.1", port), 5).close()
        assert serving.end() == 0
        assert serving.stderr == ""


def test_a_server_that_the_job_has_started_is_published_also_later(directory: Path) -> None:
    port = free_port()
    code = f"""
    tpusmi.start(interval_s=0.1)
    import jax, jax.numpy as jnp
    jax.profiler.start_server({port})
    say("ready"); hear()
    tpusmi.start(profiler_port={port})
    say("again"); hear()
    """
    with job(directory, code) as serving:
        assert serving.hear() == "ready"
        reader = collector(directory)
        seen(reader, serving.pid, lambda s, p: s.devices_of(p.key) and not p.facts["profiler_port"])
        serving.tell("go on")
        assert serving.hear() == "again"
        seen(reader, serving.pid, lambda s, p: p.facts["profiler_port"] == port)
        assert serving.end() == 0
        assert serving.stderr == ""


def test_a_port_of_another_program_is_a_warning_and_jax_is_not_bothered(
    directory: Path, taken: socket.socket
) -> None:
    code = f"""
    tpusmi.start(interval_s=0.1, profiler_port={taken.getsockname()[1]})
    import jax, jax.numpy as jnp
    jnp.ones(3).block_until_ready()
    say("ready"); hear()
    """
    with job(directory, code) as serving:
        assert serving.hear() == "ready"
        _, process = seen(collector(directory), serving.pid, lambda s, p: p.warnings)
        assert process.facts["profiler_port"] is None
        (warning,) = process.warnings
        assert warning.code == "no_profiler_server"
        assert "another program listens" in warning.message
        assert serving.end() == 0
        assert serving.stderr == ""


@pytest.mark.parametrize("port", [0, -1, 65536, 10**30])
def test_an_impossible_port_is_a_value_error_at_once(port: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 65535"):
        tpusmi.start(profiler_port=port)


@pytest.mark.parametrize("port", ["9012", 9012.0, True, b"9", [9012]])
def test_a_port_that_is_not_a_number_is_a_type_error_at_once(port: object) -> None:
    with pytest.raises(TypeError, match="whole number"):
        tpusmi.start(profiler_port=port)  # type: ignore[arg-type]


def test_the_agent_loads_nothing_for_it_before_it_is_needed(directory: Path) -> None:
    code = (
        "import sys, tpusmi; tpusmi.start(profiler_port=9012); "
        "print('tpusmi.sources.sockets' in sys.modules); tpusmi.stop()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.stdout, result.stderr) == ("False\n", "")


@pytest.mark.parametrize("version", ["0.5.3", "0.8.2"])
def test_a_jaxlib_that_hangs_in_a_capture_gets_no_server(directory: Path, version: str) -> None:
    code = f"""
    sys.modules["tensorflow"] = None  # it cannot be imported
    import jax, jaxlib, jax.numpy as jnp
    jaxlib.__version__ = "{version}"
    tpusmi.start(interval_s=0.1, profiler_port={free_port()})
    jnp.ones(3).block_until_ready()
    say("ready"); hear()
    """
    with job(directory, code) as serving:
        assert serving.hear() == "ready"
        _, process = seen(collector(directory), serving.pid, lambda s, p: p.warnings)
        assert process.facts["profiler_port"] is None
        (warning,) = process.warnings
        assert warning.code == "no_profiler_server"
        assert f"jaxlib {version} would hang" in warning.message
        assert serving.end() == 0
