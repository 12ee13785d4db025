"""Tab completion in real shells, on a real terminal."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment, tpusmi
from support.requirements import needs
from support.simulated_hosts import host_of
from support.terminals import Terminal
from support.terminals import terminal as terminal_of
from support.waits import until

from tpusmi.model import Host

BIN = os.path.dirname(TPUSMI[0])
host = host_of("v5e-4")
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(tpusmi --completion bash)"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; source <(tpusmi --completion zsh)",
    ),
    "fish": (["setsid", "-cw", "fish", "--no-config", "-i"], "tpusmi --completion fish | source"),
}
"""How each is started without anybody's settings, and what a user writes into those."""
shell = pytest.mark.parametrize("shell", [pytest.param(name, marks=needs(name)) for name in SHELLS])


@contextmanager
def completing(shell: str, home: Path) -> Iterator[Terminal]:
    command, setup = SHELLS[shell]
    path = f"{BIN}:{os.environ['PATH']}"
    env = environment(home, HOME=str(home), PATH=path, PS1="$ ", SHELL=shell)
    with terminal_of(command, env, 200, 30) as terminal:
        terminal.press(f"{setup}; echo is-''ready\n")
        terminal.see("is-ready")
        yield terminal
        terminal.press("\x15exit\n")
        terminal.end()


@shell
def test_tab_completes_commands_options_and_values(shell: str, tmp_path: Path) -> None:
    with completing(shell, tmp_path) as terminal:
        for typed, completed in (
            ("ki", "tpusmi kill"),
            ("ps --fl", "tpusmi ps --flat"),
            ("--theme colorb", "tpusmi --theme colorblind"),
            ("--simulate v5e-8 ki", "tpusmi --simulate v5e-8 kill"),
            ("--query-tpu index,memory.us", "tpusmi --query-tpu index,memory.used"),
            ("simulate v6", "tpusmi simulate v6e-8"),
            ("simulate v5e-8 --fault stub", "tpusmi simulate v5e-8 --fault stubborn"),
        ):
            terminal.press(f"tpusmi {typed}\t")
            terminal.see(completed)
            terminal.press("\x15")


@shell
def test_tab_after_kill_offers_the_holders_of_the_host(
    shell: str, tmp_path: Path, host: Host
) -> None:
    (process,) = json.loads(tpusmi(tmp_path, "ps", "--json", "--simulate", host.root).stdout)[
        "processes"
    ]
    with completing(shell, tmp_path) as terminal:

        def is_offered() -> bool:
            """The look at the host has a second, which may be too little on a busy machine."""
            terminal.press(f"\x15tpusmi --simulate {host.root} kill \t")
            for _ in range(30):
                terminal.take(0.1)
                if f"kill {process['pid']}" in terminal.text:
                    return True
            return False

        until(is_offered, what="the pid")


def test_without_the_line_that_a_shell_passes_nothing_is_written(tmp_path: Path) -> None:
    for line in ({}, {"COMP_LINE": "tpusmi ", "COMP_POINT": "x"}, {"COMP_POINT": "-1"}):
        found = tpusmi(tmp_path, _ARGCOMPLETE="1", **line)
        assert (found.returncode, found.stdout, found.stderr) == (2, "", "")


def test_without_argcomplete_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['argcomplete'] = None\nfrom tpusmi.cli import main; "
    found = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(main(['--completion', 'bash']))"],
        env=environment(tmp_path), capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (1, "")
    assert "pip install argcomplete" in found.stderr


def test_the_word_of_a_command_is_not_offered_after_it(tmp_path: Path) -> None:
    for line in ("tpusmi simulate ", "tpusmi kill ", "tpusmi kill -- ", "tpusmi ps "):
        assert line.split()[1] not in offered_after(line, tmp_path).split("\013")


def offered_after(line: str, home: Path) -> str:
    """What the shell's function reads for that line, from descriptor 8."""
    reads, writes = os.pipe()
    call = ["bash", "-c", f"exec 8>&{writes} 9>/dev/null; exec {shlex.join(TPUSMI)}"]
    env = environment(home, _ARGCOMPLETE="1", COMP_LINE=line, COMP_POINT=str(len(line)))
    with os.fdopen(reads) as answer:
        subprocess.run(call, env=env, pass_fds=[writes], timeout=30, check=True)
        os.close(writes)
        return answer.read()
