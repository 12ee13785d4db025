"""`!tpusmi` in a cell of a real Jupyter kernel prints and ends; where a person can type there is
the dashboard, also if a notebook started that terminal.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.commands import TPUSMI, environment
from support.notebook_kernels import Kernel, Message, kernel, manager_of
from support.simulated_hosts import host_of
from support.terminals import terminal
from support.waits import until

from tpusmi.model import Host

COMMAND = shlex.join(TPUSMI)
ESC = "\x1b"
LIMIT_S = 60.0
DASHBOARD = "\x1b[?1049h"
"""What opens the alternate screen."""

host = host_of("v5e-4")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("cells")) as running:
        yield running


def has_ended(process: psutil.Process) -> bool:
    """True also where the first process, as that of a container, collects no child of others."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def printed(messages: list[Message]) -> str:
    """What the cell has printed."""
    return "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")


def test_a_cell_prints_one_plain_table_and_ends(cells: Kernel, host: Host) -> None:
    said = printed(cells.run(f"!{COMMAND} --simulate {host.root}\nprint('code', _exit_code)"))
    assert said.count("tpu:0") == 1
    assert "PID USER" in said
    assert ESC not in said
    assert said.count("tpusmi.show()") == 1
    assert said.rstrip().endswith("code 0")


def test_a_cell_with_a_fleet_is_not_sent_to_what_only_a_host_has(cells: Kernel) -> None:
    said = printed(cells.run(f"!{COMMAND} fleet --simulate v5e-4"))
    assert "a notebook cell takes no keys" in said
    assert "1 simulated host" in said
    assert "show()" not in said
    assert "-m " not in said


@pytest.mark.parametrize(
    "cell",
    [
        "print('\\n'.join(get_ipython().getoutput({command!r})))",
        "%%bash\n{command}",
        "import subprocess; print(subprocess.run({command!r}, shell=True, text=True, "
        "capture_output=True).stdout)",
        "!script -qc '{command}' /dev/null",
        "!bash -c '{command}; true'",
    ],
    ids=["!!", "%%bash", "subprocess", "another terminal in between", "a shell in between"],
)
def test_every_other_way_to_run_it_in_a_cell_prints_and_ends(
    cells: Kernel, host: Host, cell: str
) -> None:
    if "script" in cell and shutil.which("script") is None:
        pytest.skip("needs script(1)")
    said = printed(cells.run(cell.format(command=f"{COMMAND} --simulate {host.root}")))
    assert said.count("tpu:0") == 1
    assert ESC not in said


IN_STDIN_ONLY = """
import os, pty, subprocess
ours, theirs = pty.openpty()
child = subprocess.Popen({command!r}, shell=True, stdin=theirs, stdout=theirs, stderr=theirs)
os.close(theirs)
said = b""
try:
    while more := os.read(ours, 65536):
        said += more
except OSError:
    pass
os.close(ours)
print(said.decode(), child.wait({limit}))
"""
"""As Colab runs a command: its terminal is not the one that controls its session."""


def test_a_terminal_that_only_stdin_knows_is_a_cells_as_well(cells: Kernel, host: Host) -> None:
    command = f"{COMMAND} --simulate {host.root}"
    said = printed(cells.run(IN_STDIN_ONLY.format(command=command, limit=LIMIT_S)))
    assert said.count("tpu:0") == 1
    assert ESC not in said


def test_a_question_in_a_cell_is_not_waited_for(cells: Kernel, host: Host) -> None:
    command = f"{COMMAND} kill --chip 0,1,2,3 --simulate {host.root}"
    said = printed(cells.run(f"!{command}\nprint('code', _exit_code)"))
    assert "a notebook cell takes no answer, --yes is needed" in said
    assert ESC not in said
    assert said.rstrip().endswith("code 2")


@pytest.mark.parametrize(("option", "shown"), [("--loop 0.25", "tpu:3"), ("-m", DASHBOARD)])
def test_an_interrupted_cell_leaves_no_process_behind(
    tmp_path: Path, host: Host, option: str, shown: str
) -> None:
    manager, client, cells = manager_of(tmp_path)
    try:
        client.execute(f"!{COMMAND} {option} --simulate {host.root}")
        cells.wait_for(lambda m: m["msg_type"] == "stream" and shown in m["content"]["text"])
        pid = manager.provisioner.pid
        started = [p for p in psutil.Process(pid).children(True) if host.root in p.cmdline()]
        assert started
        manager.interrupt_kernel()
        until(lambda: all(map(has_ended, started)), LIMIT_S, "the end of the command")
        assert "1" in printed(cells.run("print(1)"))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_tmux_that_a_cell_started_has_the_dashboard(
    cells: Kernel, host: Host, tmp_path: Path
) -> None:
    tmux = f"tmux -f /dev/null -S {tmp_path}/socket"
    cells.run(f"!{tmux} new-session -d -x 100 -y 30 '{COMMAND} --simulate {host.root}'")
    try:
        until_s = time.monotonic() + LIMIT_S
        shown = ""
        while "Quit" not in shown and time.monotonic() < until_s:
            time.sleep(0.1)
            asked = [*tmux.split(), "capture-pane", "-p"]
            shown = subprocess.run(asked, capture_output=True, text=True, timeout=LIMIT_S).stdout
        assert "Quit" in shown, shown
    finally:
        subprocess.run([*tmux.split(), "kill-server"], timeout=LIMIT_S)


def test_a_terminal_under_a_notebook_server_has_the_dashboard(host: Host, tmp_path: Path) -> None:
    inherited = {"JPY_PARENT_PID": "1", "COLAB_GPU": "1", "PAGER": "cat", "GIT_PAGER": "cat"}
    env = environment(tmp_path, **inherited, HOME=str(tmp_path))
    with terminal([*TPUSMI, "--simulate", host.root], env) as screen:
        screen.see("Quit")
        screen.press("q")
        assert screen.end() == 0


def test_a_wish_for_the_dashboard_without_a_terminal_is_answered_in_a_sentence(host: Host) -> None:
    found = subprocess.run(
        [*TPUSMI, "-m", "--simulate", host.root], env=environment("/"), capture_output=True,
        text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert found.stdout.count("tpu:0") == 1
    assert found.stderr == "tpusmi: the dashboard needs a terminal: one plain table instead\n"
