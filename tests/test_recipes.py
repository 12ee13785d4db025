"""The lines of docs/recipes.md work as they are printed there, on simulated hosts."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.requirements import needs
from support.simulated_hosts import set_faults
from support.terminals import terminal
from support.waits import until, with_a_short_limit

from tpusmi.model import Host
from tpusmi.simulate.host import HostPlan, start

PAGE = Path(__file__).parents[1] / "docs" / "recipes.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
SHELL = [code for language, code in BLOCKS if language == "sh"]
JOB = "print('trains')\n"
COUNTED = """#!/bin/sh
# tpusmi on a simulated host. Loops without an end print twice, fast.
FAST="--duration-ms 100 --no-xprof --cost-seconds 0"
case "$*" in *--count*) ;; *--loop*) set -- "$@" --count 2 -lms 100 ;; esac
case "$*" in *--every*--count*) ;; *--every*) set -- "$@" --count 2 --every 0.1 $FAST ;; esac
case "$*" in *"--count 12"*) set -- "$@" --count 2 -lms 100 ;; esac
exec {command} {simulate} "$@"
"""

Run = Callable[[str], "subprocess.CompletedProcess[str]"]


def block(*words: str) -> str:
    """The one block of the shell with these words in it."""
    (code,) = [code for code in SHELL if all(word in code for word in words)]
    return code


PIPES = [
    code
    for code in SHELL
    if not re.search(r"watch|train\.py|bisect|#!|kill|holders\.txt|tpusmi profile", code)
]
"""The blocks that only read and print."""


@pytest.fixture(scope="module")
def busy() -> Iterator[Host]:
    """A host with two jobs that have agents."""
    with start(HostPlan("v5e-8", processes=2, agent=True, age_s=600)) as host:
        yield host


@pytest.fixture
def left() -> Iterator[Host]:
    """A host with a stale holder, for a test that ends it."""
    with start(HostPlan("v5e-4", faults=("orphan",))) as host:
        yield host


@pytest.fixture(scope="module")
def stale() -> Iterator[Host]:
    """A host with a stale holder, for tests that only read."""
    with start(HostPlan("v5e-4", faults=("orphan",))) as host:
        yield host


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[Host | None], Run]:
    """Runs code in a shell in which `tpusmi` is on that host."""

    def on(host: Host | None) -> Run:
        tools = tmp_path / "bin"
        tools.mkdir(exist_ok=True)
        simulate = f"--simulate {shlex.quote(host.root)}" if host else ""
        for name, text in (
            ("tpusmi", COUNTED.format(command=shlex.join(TPUSMI), simulate=simulate)),
            ("mail", "#!/bin/sh\ncat > mail.txt\n"),
            ("python", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n'),
        ):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        env = environment(tmp_path, PATH=f"{tools}:{os.environ['PATH']}", HOME=str(tmp_path))

        def run(code: str, **more: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code], env={**env, **more}, cwd=tmp_path,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            )  # fmt: skip

        return run

    (tmp_path / "train.py").write_text(JOB)
    return on


@needs("jq")
@pytest.mark.parametrize("code", PIPES, ids=lambda code: " ".join(code.split())[:60])
@with_a_short_limit
def test_a_line_that_reads_works_as_it_is(
    code: str, busy: Host, shell: Callable[[Host | None], Run]
) -> None:
    found = shell(busy)(code)
    assert (found.returncode, found.stderr) == (0, "")
    is_silent = "> " in code or "warnings" in code
    assert bool(found.stdout.strip()) is not is_silent
    assert "null" not in found.stdout


@needs("jq")
def test_the_numbers_are_those_of_the_host(busy: Host, shell: Callable[[Host | None], Run]) -> None:
    run = shell(busy)
    total = int(run(block("hbm_used_bytes] | add'")).stdout)
    assert int(run(block("1073741824 | round")).stdout) == pytest.approx(total / 2**30, abs=4)
    lines = run(block("memory_profile")).stdout.splitlines()
    amounts = [int(line.split()[0]) for line in lines]
    assert len(amounts) == 5
    assert amounts == sorted(amounts, reverse=True)
    assert len(run(block("step_time_s.p95)")).stdout.splitlines()) == 2
    assert run(block(".holding.nodes[]")).stdout == "[]\n"
    assert re.fullmatch(r"tpu:\d\n", run(block("max_by")).stdout)


@needs("jq")
def test_where_nothing_reports_memory_the_sum_is_unknown_and_no_line_fails(
    shell: Callable[[Host | None], Run],
) -> None:
    run = shell(None)
    code = "set +o pipefail; "  # tpusmi exits with 1 where no TPU is
    assert run(code + block("hbm_used_bytes] | add'")).stdout == "null\n"
    assert run(code + block("1073741824 | round")).stdout == ""
    assert run(code + block("max_by")).stdout == "unknown\n"


def test_a_job_starts_when_the_tpu_is_free(shell: Callable[[Host | None], Run]) -> None:
    with start(HostPlan("v5e-4", faults=("lockfile-left",))) as free:
        found = shell(free)(block("--wait-free 600"))
    assert (found.returncode, found.stdout) == (0, "trains\n")


def test_a_job_does_not_start_on_a_tpu_that_is_busy(
    busy: Host, shell: Callable[[Host | None], Run]
) -> None:
    found = shell(busy)(block("tpusmi ps >&2 && python train.py"))
    assert (found.returncode, found.stdout) == (5, "")
    assert shell(busy)(block("holders.txt")).stdout.startswith(
        "busy: vm (SIMULATED): chips 0-7 held"
    )


def test_what_an_earlier_job_has_left_is_ended_before_the_next_one(
    left: Host, shell: Callable[[Host | None], Run]
) -> None:
    run = shell(left)
    assert run(block("holders.txt")).stdout.startswith("left over by an earlier job")
    # Not before each process of the machine can be seen, such as those of other tests.
    until(lambda: run(block("tpusmi ps >&2 && python train.py")).stdout == "trains\n")


def test_the_prolog_of_slurm_frees_the_tpu(
    left: Host, shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    run = shell(left)
    (tmp_path / "prolog.sh").write_text(block("Slurm's prolog"))
    found = run("exec sh prolog.sh")
    assert found.stdout == ""
    assert "ended by SIGTERM" in found.stderr
    until(lambda: run("exec sh prolog.sh").returncode == 0)  # all processes can be seen
    until(lambda: run("tpusmi ps").returncode == 0)


@needs("jq")
def test_the_epilog_of_slurm_ends_the_processes_of_its_user_only(
    shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    with start(HostPlan("v5e-4", processes=2)) as host:
        run = shell(host)
        (tmp_path / "epilog.sh").write_text(block("Slurm's epilog"))
        (user,) = {
            p["user"] for p in json.loads(run("tpusmi ps --json || true").stdout)["processes"]
        }
        assert run("exec sh epilog.sh", SLURM_JOB_USER="another").returncode == 0
        assert run("tpusmi ps").returncode == 5
        found = run("exec sh epilog.sh", SLURM_JOB_USER=user)
        assert found.stdout == ""
        until(lambda: run("exec sh epilog.sh", SLURM_JOB_USER=user).returncode == 0)
        until(lambda: run("tpusmi ps").returncode == 0)


@needs("jq")
def test_an_alarm_prints_each_warning_once(
    stale: Host, shell: Callable[[Host | None], Run]
) -> None:
    (line,) = shell(stale)(block("--loop 30")).stdout.splitlines()
    assert re.match(r"TPU: stale_holder \d+ holds the TPU and is stale", line)
    assert shell(stale)(block("--strict")).returncode == 1


def test_cron_runs_its_lines(
    stale: Host, shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    (table,) = [code for language, code in BLOCKS if language == "crontab"]
    run = shell(stale)
    for line in table.splitlines():
        command = line.split(" ", 5)[5]
        assert "%" not in command.replace("\\%", "")
        script = tmp_path / "line.sh"
        script.write_text(command.replace("\\%", "%"))
        assert run("exec sh line.sh").returncode == 0
    assert len((tmp_path / "tpu.csv").read_text().splitlines()) == 4
    assert "is stale" in (tmp_path / "mail.txt").read_text()


@needs("jq", "tmux")
def test_the_status_line_of_tmux_shows_the_duty_cycle(
    busy: Host, shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    (conf,) = [code for language, code in BLOCKS if language == "tmux"]
    (tmp_path / "tmux.conf").write_text(conf)
    shell(busy)
    env = environment(tmp_path, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    command = ["tmux", "-S", str(tmp_path / "socket"), "-f", str(tmp_path / "tmux.conf"), "new"]
    with terminal([*command, "sleep 60"], env, 120, 10) as shown:
        try:
            shown.see_match(r"TPU \d\d% *$")
        finally:
            subprocess.run([*command[:3], "kill-server"], env=env, capture_output=True, timeout=60)


@needs("watch")
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("code", [code for code in SHELL if "watch" in code], ids=str.strip)
def test_watch_shows_tables_that_fit(
    code: str, columns: int, busy: Host, shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    shell(busy)
    env = environment(tmp_path, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with terminal(["bash", "-c", code], env, columns, 30) as shown:
        shown.see_match(r"PID.*COMMAND *\n(.*\S.*\n){2,} *\n")
        rows = shown.text.splitlines()
    first = next(n for n, row in enumerate(rows) if re.search(r"PID.*COMMAND", row)) + 1
    rows = rows[: next((n for n, row in enumerate(rows) if row.startswith("slice of")), len(rows))]
    assert sum(bool(re.match(r" *\d+ ", row)) for row in rows[first:]) >= 2
    begins = re.compile(r" *(\d+ |pid \d+ |/tmp/|! |$)")
    assert [row for row in rows[first:] if not begins.match(row)] == [], "a row is wrapped"
    if "-c" in code:
        assert re.search(rb"\x1b\[[0-9;]*[1-9]m", shown.written)


@needs("jq")
@pytest.mark.parametrize(
    ("job", "limit_s", "code"),
    [("steps", "0.25", 0), ("steps", "0.0001", 1), ("print()", "0.25", 125)],
    ids=["fast", "slow", "without steps"],
)
def test_a_bisection_asks_for_the_time_of_a_step(
    job: str, limit_s: str, code: int, shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    if job == "steps":
        job = "import time, tpusmi; tpusmi.start()\nwhile True: tpusmi.step(); time.sleep(0.02)\n"
    (tmp_path / "train.py").write_text(job)
    run = shell(None)
    (tmp_path / "slow.sh").write_text(block("WARM_UP_S"))
    for warm_up_s in ("0.2",) if code == 125 else ("2", "20"):  # so long on a busy machine
        found = run("bash slow.sh", LIMIT_S=limit_s, WARM_UP_S=warm_up_s)
        if found.returncode == code:
            break
    assert found.returncode == code, found.stderr


@pytest.mark.parametrize(
    "code", [code for language, code in BLOCKS if language == "python"], ids=["one", "csv", "many"]
)
def test_pandas_reads_it(
    code: str, busy: Host, shell: Callable[[Host | None], Run], tmp_path: Path
) -> None:
    pytest.importorskip("pandas")
    run = shell(busy)
    if "tpu.csv" in code:
        run(block("tpu.csv", "--count 12"))
    (tmp_path / "recipe.py").write_text(code)
    found = run("python recipe.py")
    assert (found.returncode, found.stderr) == (0, "")
    assert len(found.stdout.splitlines()) > 3


@needs("jq")
def test_profiles_are_lines_json_and_an_alert(shell: Callable[[Host | None], Run]) -> None:
    with start(HostPlan("v5e-4", agent=True, age_s=600)) as host:
        run = shell(host)
        lines = run(block("profile --every 1 ")).stdout.splitlines()
        assert len(lines) == 4
        figures = json.loads(run(block("idle_percent, step_s")).stdout)
        assert figures["mxu_percent"] > 0
        assert run(block("profile", "while read")).stdout == ""
        set_faults(host.root, ["idle"])

        def of_idle_job() -> list[str] | None:
            alerts = run(block("profile", "while read")).stdout.splitlines()
            return alerts if len(alerts) == 2 else None

        alerts = until(of_idle_job)
    assert re.match(r"TPU: idle \d+ %, then nothing", alerts[0])


def test_every_block_is_tried() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "python", "crontab", "tmux"}
    others = [code for code in SHELL if code not in PIPES]
    assert len(others) == 11, "a block that does more than read needs a test of its own"
