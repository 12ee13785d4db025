"""`tpusmi.show()` in a real Jupyter kernel, in plain Python, and in IPython on a terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import segments
from support.commands import environment
from support.notebook_kernels import Kernel, Message, kernel, manager_of
from support.terminals import terminal

from tpusmi.simulate.host import HostPlan, start
from tpusmi.wire.writer import SegmentWriter

INTERVAL_S = 0.2
QUIET_S = 6 * INTERVAL_S
"""A panel that was live would have said something by then."""
SHOW = f"import tpusmi; panel = tpusmi.show({INTERVAL_S})"


class Job:
    """A job on the host that the kernel looks at: this process, by its segment."""

    def __init__(self, directory: Path) -> None:
        self._writer: SegmentWriter = segments.my_segment(directory)
        self.says(4.0)

    def says(self, steps_per_s: float) -> None:
        """Publish a sample that is fresh."""
        now_s = time.monotonic()
        process = {**segments.RUNNING, "steps_per_s": steps_per_s, "utilization_at_s": now_s}
        devices = [segments.device(i) for i in range(2)]
        self._writer.append(segments.slot(now_s, process, devices, time.time()))

    def close(self) -> None:
        self._writer.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host")


@pytest.fixture(scope="module")
def cells(place: Path) -> Iterator[Kernel]:
    with kernel(place) as running:
        yield running


@pytest.fixture(scope="module")
def job(place: Path) -> Iterator[Job]:
    found = Job(place)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _stopped(cells: Kernel) -> Iterator[None]:
    """No panel of one test is live in the next."""
    yield
    cells.run("if 'panel' in globals(): panel.stop()")


def panels(messages: list[Message]) -> list[Message]:
    """The messages that are about a panel."""
    return [m for m in messages if m["msg_type"] in ("display_data", "update_display_data")]


def display_id(message: Message) -> str:
    return str(message["content"]["transient"]["display_id"])


def html(message: Message) -> str:
    return str(message["content"]["data"]["text/html"])


def is_update(message: Message) -> bool:
    return bool(message["msg_type"] == "update_display_data")


def quiet(cells: Kernel) -> list[Message]:
    """What is said about a panel while nothing is run for a while."""
    return panels(cells.run(f"import time; time.sleep({QUIET_S})"))


def test_a_panel_appears_below_the_cell_as_html_and_as_text(cells: Kernel, job: Job) -> None:
    job.says(4.0)
    first = panels(cells.run(SHOW))[0]
    data = first["content"]["data"]
    assert first["msg_type"] == "display_data"
    assert data.keys() == {"text/html", "text/plain"}
    for text in data.values():
        assert "tpu:9" in text
        assert f"live, every {INTERVAL_S} s" in text
    assert "script" not in data["text/html"]


def test_the_panel_is_updated_in_its_place_when_the_host_changes(cells: Kernel, job: Job) -> None:
    job.says(4.0)
    first = panels(cells.run(SHOW))[0]
    assert "<td>4.00</td>" in html(first)
    job.says(7.25)
    changed = cells.wait_for(lambda m: is_update(m) and "<td>7.25</td>" in html(m))
    assert display_id(changed) == display_id(first)


def test_the_kernel_computes_while_the_panel_is_updated(cells: Kernel, job: Job) -> None:
    cells.run(SHOW)
    busy = "import time; end = time.monotonic() + 3.0; n = 0\nwhile time.monotonic() < end: n += 1"
    said = cells.run(f"{busy}\nprint('counted', n > 1000)")
    assert any(m["content"].get("text") == "counted True\n" for m in said)
    assert len(panels(said)) >= 2


def test_stop_ends_the_updates_and_the_panel_says_when(cells: Kernel, job: Job) -> None:
    first = panels(cells.run(SHOW))[0]
    said = cells.run("panel.stop(); panel")
    last = panels(said)[-1]
    assert display_id(last) == display_id(first)
    for text in last["content"]["data"].values():
        assert "stopped at " in text
        assert "live," not in text
    shown = next(m for m in said if m["msg_type"] == "execute_result")
    assert shown["content"]["data"]["text/plain"].startswith("<tpusmi panel: stopped at ")
    assert quiet(cells) == []
    assert panels(cells.run("panel.stop()")) == []


def test_another_panel_takes_the_place_of_the_first(cells: Kernel, job: Job) -> None:
    first = panels(cells.run(SHOW))[0]
    said = panels(cells.run("first, panel = panel, tpusmi.show(0.2)"))
    ended = [m for m in said if display_id(m) == display_id(first)][-1]
    assert "stopped at " in html(ended)
    assert "another panel replaced it" in html(ended)
    later = {display_id(m) for m in quiet(cells)}
    assert len(later) == 1
    assert display_id(first) not in later


def test_a_panel_ends_after_its_time(cells: Kernel, job: Job) -> None:
    first = panels(cells.run("import tpusmi; panel = tpusmi.show(0.2, duration_s=0.5)"))[0]
    ended = cells.wait_for(lambda m: is_update(m) and "its time is over" in html(m))
    assert display_id(ended) == display_id(first)
    assert quiet(cells) == []


def test_no_thread_of_a_panel_stays_in_the_kernel(cells: Kernel, job: Job) -> None:
    cells.run(SHOW)
    cells.run("panel.stop()")
    code = (
        "import threading, time; end = time.monotonic() + 20\n"
        "def left(): return [t.name for t in threading.enumerate() if 'tpusmi' in t.name]\n"
        "while left() and time.monotonic() < end: time.sleep(0.05)\n"
        "print(left())"
    )
    said = cells.run(code)
    assert any(m["content"].get("text") == "[]\n" for m in said)


def test_a_cell_that_captures_its_output_does_not_capture_the_panel(
    cells: Kernel, job: Job
) -> None:
    cells.run(SHOW)
    cells.run("%%capture kept\nimport time; time.sleep(1)")
    said = cells.run("print('kept', len(kept.outputs))")
    assert any(m["content"].get("text") == "kept 0\n" for m in said)


def test_wrong_wishes_end_no_cell(cells: Kernel) -> None:
    said = cells.run("import tpusmi; panel = tpusmi.show(simulate='v99-8'); print(panel)")
    told = "".join(m["content"]["text"] for m in said if m["msg_type"] == "stream")
    assert "tpusmi.show: unknown accelerator type 'v99-8'" in told
    assert "<tpusmi panel: stopped at " in told
    assert panels(said) == []


def test_a_simulated_host_is_shown_as_such(cells: Kernel) -> None:
    with start(HostPlan("v5e-4")) as host:
        first = panels(cells.run(f"import tpusmi; panel = tpusmi.show(simulate={host.root!r})"))[0]
        assert "SIMULATED" in html(first)
        assert "4 × TPU v5e" in html(first)
        told = cells.wait_for(lambda m: is_update(m) and tells_memory(m, 4))
        assert "libtpu: " not in html(told)
        said = cells.run("import sys; panel.stop(); print('grpc' in sys.modules)")
        assert any(m["content"].get("text") == "False\n" for m in said)


def tells_memory(message: Message, devices: int) -> bool:
    """What only its metrics server tells: the nominal limit is another one."""
    return html(message).count("/15.7 GiB</td>") == devices


def test_a_simulated_host_of_ones_own_ends_with_the_panel(cells: Kernel) -> None:
    first = panels(cells.run("import tpusmi; panel = tpusmi.show(0.2, simulate='v5e-1')"))[0]
    assert "1 × TPU v5e" in html(first)
    code = (
        "import psutil, time; children = psutil.Process().children; had = bool(children())\n"
        "panel.stop(); end = time.monotonic() + 30\n"
        "while children() and time.monotonic() < end: time.sleep(0.05)\n"
        "print(had, children())"
    )
    assert any(m["content"].get("text") == "True []\n" for m in cells.run(code))


def test_a_panel_says_that_its_kernel_has_ended(place: Path, tmp_path: Path) -> None:
    manager, client, running = manager_of(tmp_path, TPUSMI_DIR=str(place))
    try:
        running.run(SHOW)
        client.shutdown()
        running.wait_for(lambda m: is_update(m) and "the kernel ended" in html(m))
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


def test_plain_python_prints_one_table(place: Path, job: Job) -> None:
    job.says(4.0)
    found = subprocess.run(
        [sys.executable, "-c", "import tpusmi, sys; sys.stderr.write(repr(tpusmi.show()))"],
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 0
    assert found.stdout.count("tpu:8") == 1
    assert "\x1b" not in found.stdout
    assert found.stderr.endswith("(printed once: this is not a notebook)>")


def test_ipython_on_a_terminal_prints_one_table(place: Path, job: Job, tmp_path: Path) -> None:
    code = "import tpusmi; p = tpusmi.show(); print('then', p)"
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "-c", code]
    with terminal(command, environment(place, IPYTHONDIR=str(tmp_path))) as screen:
        screen.see("tpu:8")
        screen.see("this is not a notebook")
        assert screen.end() == 0
        assert b"text/html" not in screen.written
