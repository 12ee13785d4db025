"""The command line as scripts use it: what goes to stdout, what to stderr, and the exit code."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from support import segments
from support.commands import TPUSMI, environment, tpusmi
from support.schemas import strict_schema
from support.users import reachable

import tpusmi as package


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A directory with the segment of one living job (this process)."""
    segments.my_segment(tmp_path)
    return tmp_path


def test_without_a_terminal_it_prints_one_plain_table(job: Path) -> None:
    found = tpusmi(job)
    assert found.returncode == 0
    assert "tpu:8" in found.stdout
    assert "python train.py" in found.stdout
    assert "\x1b" not in found.stdout
    assert found.stderr == ""


@pytest.mark.parametrize("flag", ["-1", "--once", "-s"])
def test_once_is_the_same_table(job: Path, flag: str) -> None:
    assert "tpu:9" in tpusmi(job, flag).stdout


def test_json_is_one_object_of_the_schema(job: Path) -> None:
    found = json.loads(tpusmi(job, "--json").stdout)
    jsonschema.validate(found, strict_schema())
    assert found["devices"][0]["hbm_used_bytes"] == segments.GIB
    assert found["processes"][0]["pid"] == os.getpid()
    assert found["simulated"] is False


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--json"], "{"),
        (["--once"], "tpusmi"),
        (["-L"], ""),
        (["--query-tpu=index", "--format=csv,noheader"], ""),
    ],
)
def test_where_nothing_is_it_exits_1_says_why_on_stderr_and_stdout_stays_data(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    found = tpusmi(tmp_path, *arguments)
    assert found.returncode == 1
    assert found.stdout.startswith(expected)
    assert "no TPU and no agent here" in found.stderr


def test_a_filter_that_matches_nothing_says_so(job: Path) -> None:
    found = tpusmi(job, "--id", "77")
    assert found.returncode == 1
    assert (found.stdout + found.stderr).count("No device or process matches.") == 1
    listed = tpusmi(job, "--id", "77", "-L")
    assert listed.stderr == "tpusmi: No device or process matches.\n"


def test_strict_exits_4_when_a_source_failed(tmp_path: Path) -> None:
    (tmp_path / "1-1.seg").write_bytes(b"garbage" * 9)
    assert tpusmi(tmp_path, "--json", "--strict").returncode == 4
    found = tpusmi(tmp_path, "--json")
    # Nothing was found either, and whether there is something is not known.
    assert (found.returncode, "but agent could not be asked" in found.stderr) == (4, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["nonsense"],
        ["--query-tpu=nonsense", "--format=csv"],
        ["--query-tpu=index"],
        ["--query-tpu=index", "--format=xml"],
        ["--loop", "0"],
        ["--interval", "x"],
        ["--id="],
        ["--format=csv"],
        ["--query-tpu=index", "--format=csv", "--json"],
        ["-p", "one"],
    ],
)
def test_a_wrong_command_line_exits_2_with_the_reason(job: Path, arguments: list[str]) -> None:
    found = tpusmi(job, *arguments)
    assert found.returncode == 2
    assert "error" in found.stderr
    assert found.stdout == ""


def test_a_query_prints_csv_as_nvidia_smi_does(job: Path) -> None:
    found = tpusmi(job, "--query-gpu=index,memory.used,utilization.gpu", "--format=csv").stdout
    assert found.splitlines() == [
        "index, memory.used [MiB], utilization.gpu [%]",
        "0, 1024 MiB, 90 %",
        "1, 2048 MiB, 92 %",
    ]


def test_a_query_of_processes_prints_the_living_ones(job: Path) -> None:
    segments.segment(job, segments.dead_identity(), devices=1)
    found = tpusmi(job, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    assert found.stdout == f"{os.getpid()}, 3072\n"


def test_devices_are_listed_as_nvidia_smi_lists_them(job: Path) -> None:
    (segment,) = job.glob("*.seg")  # its name is the process's pid and start
    assert tpusmi(job, "-L").stdout == (
        f"TPU 0: TPU v5e (UUID: tpu:8@{segment.stem})\n"
        f"TPU 1: TPU v5e (UUID: tpu:9@{segment.stem})\n"
    )


@pytest.mark.parametrize("flag", ["--help-query-tpu", "--help-query-gpu"])
def test_the_fields_of_a_query_are_listed_with_unit_and_scope(tmp_path: Path, flag: str) -> None:
    found = tpusmi(tmp_path, flag)
    assert found.returncode == 0
    assert '"hbm_used_bytes"\n' in found.stdout
    assert '"utilization.gpu" or "utilization.duty_cycle"\n' in found.stdout
    assert "Unit: MiB. Scope: device." in found.stdout


@pytest.mark.parametrize("flag", ["--version", "-V", "-v"])
def test_the_version_is_told(tmp_path: Path, flag: str) -> None:
    assert tpusmi(tmp_path, flag).stdout == f"tpusmi {package.__version__}\n"


def test_help_names_the_exit_codes(tmp_path: Path) -> None:
    assert "130 interrupted" in tpusmi(tmp_path, "--help").stdout


def test_a_loop_gives_one_object_per_line_each_at_once_until_interrupted(job: Path) -> None:
    with subprocess.Popen(
        [*TPUSMI, "--json", "--loop-ms", "100"],
        env=environment(job),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as loop:
        assert loop.stdout is not None
        lines = [json.loads(loop.stdout.readline()) for _ in range(3)]
        loop.send_signal(signal.SIGINT)
        assert loop.wait(60) == 130
    assert all(line["schema"] == 1 for line in lines)
    assert len({line["host"]["time"] for line in lines}) == 3


def test_a_loop_of_csv_prints_its_header_once(job: Path) -> None:
    command = f"{shlex.join(TPUSMI)} --query-tpu=index --format=csv -l 0.1 | head -5"
    found = subprocess.run(
        ["bash", "-c", command], env=environment(job), capture_output=True, text=True, timeout=60
    )
    assert found.stdout == "index\n0\n1\n0\n1\n"
    assert found.stderr == ""


def test_a_reader_that_has_had_enough_is_no_error(job: Path) -> None:
    command = f"{shlex.join(TPUSMI)} --once | true"
    found = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=environment(job), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    "odd",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": "dumb"},
        {"TERM": None},
        {"HOME": None},
        {"NO_COLOR": "1"},
    ],
    ids=str,
)
def test_it_answers_in_an_odd_environment(job: Path, odd: dict[str, str | None]) -> None:
    found = tpusmi(job, **odd)
    assert found.returncode == 0, found.stderr
    assert "tpu:8" in found.stdout


def test_without_utf8_the_table_is_ascii(job: Path) -> None:
    found = subprocess.run(
        [*TPUSMI], env=environment(job, PYTHONIOENCODING="ascii"), capture_output=True, timeout=60
    )
    found.stdout.decode("ascii")


def test_color_can_be_forced_into_a_pipe_and_forbidden(job: Path) -> None:
    assert "\x1b[" in tpusmi(job, "--color").stdout
    assert "\x1b[" not in tpusmi(job, "--color", "--no-color").stdout


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-p", str(os.getpid())], True),
        (["-p", "1"], False),
        (["-u", "no-such-user"], False),
        (["-u"], True),
        (["--id", "tpu:8,1"], True),
    ],
)
def test_a_filter_chooses_processes_and_devices(
    job: Path, arguments: list[str], shown: bool
) -> None:
    found = json.loads(tpusmi(job, "--json", *arguments).stdout)
    assert bool(found["processes"]) is shown


def test_what_may_not_be_seen_exits_3(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    code = (
        "import os, sys; from tpusmi.cli import main\n"
        "main(['--once'])  # as root: everything is imported\n"
        "os.seteuid(65534); code = main(['--once']); os.seteuid(0); sys.exit(code)"
    )
    os.chmod(segments.my_segment(tmp_path).path, 0o600)
    with reachable(tmp_path):
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True
        )
    assert found.returncode == 3, found.stderr
    assert "try sudo" in found.stderr


def test_a_job_that_ended_long_ago_is_no_answer_but_for_json(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, segments.dead_identity(), devices=1)
    then = time.monotonic() - 3000
    writer.append(
        segments.slot(max(then, 1.0), segments.RUNNING, [segments.device()], time.time() - 3000)
    )
    who = segments.dead_identity()._replace(boot_id=b"x" * 16)
    os.unlink(writer.path)
    writer = segments.segment(tmp_path, who, devices=1)
    writer.append(segments.slot(50.0, segments.RUNNING, [segments.device()], time.time() - 3000))
    assert tpusmi(tmp_path, "--once").returncode == 1
    assert tpusmi(tmp_path, "-L").returncode == 1
    assert json.loads(tpusmi(tmp_path, "--json").stdout)["processes"][0]["state"] == "dead"


@pytest.mark.parametrize("flags", ["--once", "--json", "-L", "--help-query-tpu"])
def test_a_stdout_that_is_closed_or_full_gives_no_traceback(job: Path, flags: str) -> None:
    for redirect, code in ((">&-", 74), (">/dev/full", 74)):
        command = f"{shlex.join(TPUSMI)} {flags} {redirect}"
        found = subprocess.run(
            ["bash", "-c", command], env=environment(job), capture_output=True, text=True
        )
        assert found.returncode == code, (redirect, found.stderr)
        assert "Traceback" not in found.stderr


def test_my_processes_are_those_of_my_user_whatever_the_environment_says(job: Path) -> None:
    assert tpusmi(job, "-u", USER="somebody-else").returncode == 0


def test_devices_and_pids_are_lists_with_or_without_spaces(job: Path) -> None:
    both = tpusmi(job, "--id", "0, 1", "--query-tpu=index", "--format=csv,noheader").stdout
    assert both == "0\n1\n"
    assert tpusmi(job, "-p", f"1,{os.getpid()}").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--readonly", "kill", "1"], "tpusmi kill does not take --readonly: it is an option of"),
        (
            ["-l", "5", "ps"],
            "tpusmi ps does not take -l: it is an option of tpusmi, tpusmi demo and tpusmi fleet",
        ),
        (["--chip", "0"], "tpusmi does not take --chip: it is an option of tpusmi ps and tpusmi k"),
        (["killl"], "unknown command killl; did you mean kill?"),
        (["nonsense"], "unknown command nonsense"),
        (["--json", "--nonsense"], "tpusmi has no option --nonsense"),
        (["--jsn"], "tpusmi has no option --jsn; did you mean --json?"),
        (["ps", "--flta"], "tpusmi ps has no option --flta; did you mean --flat?"),
        (["ps", "7"], "tpusmi ps does not take 7"),
        (["--simulate", "ps"], "--simulate needs a TYPE, such as v5e-8, before the command ps"),
        (["--loop-ms", "5"], "5 ms is not between 100 and 86400000 ms"),
        (["-p", "9999999999"], "9999999999 is too large"),
        (["--count", "0"], "0 is not a whole number from 1 up"),
        (["--count", "-3"], "--count cannot be negative"),
        (["--count"], "--count needs a value"),
        (["--once", "--count", "2"], "--once prints one table: leave out either that or --count"),
        (["-i", "0"], "to choose devices, write --id 0"),
        (["-i", "0,1"], "to choose devices, write --id 0,1"),
        (["-i", "1", "--query-gpu=index", "--format=csv"], "-i is the interval: --id chooses dev"),
        (["-i", "1", "-q"], "-i is the interval: --id chooses devices"),
        (["--format=json"], "--json prints JSON"),
        (["--query-tpu=index", "--format=prometheus"], "tpusmi serve has all numbers"),
        (["--format=csv"], "--format needs --query-tpu or --query-processes"),
        (["-lms500"], "to loop in milliseconds, write -lms 500"),
        (["ps", "--chip", "3-1"], "3-1 ends before it begins"),
        (["ps", "--chip", "0-99999999"], "0-99999999 names more than 4096 chips"),
        (["ps", "--chip", "0-"], "0- is not a list of chips such as 0,2-5"),
        (["-pm", "1"], "a TPU has no such setting"),
        (["--gpu-reset"], "tpusmi kill --stale ends what holds it"),
        (["-x"], "--json prints everything as JSON"),
        (["nvlink"], "a TPU has nothing like it"),
        (["--metric", "hbm_usage"], "--query-tpu=memory.used"),
    ],
    ids=str,
)
def test_an_error_is_one_sentence_and_a_line_that_names_the_help(
    tmp_path: Path, arguments: list[str], error: str
) -> None:
    found = tpusmi(tmp_path, *arguments)
    assert (found.returncode, found.stdout) == (2, "")
    sentence, *rest = found.stderr.splitlines()
    assert error in sentence
    assert rest == [] if "--help" in sentence else rest[0].endswith("--help lists the options")


@pytest.mark.parametrize("command", [[], ["ps", "--pid"], ["--simulate"], ["kill", "--signal"]])
def test_an_error_repeats_a_strange_word_cut_and_without_control_characters(
    tmp_path: Path, command: list[str]
) -> None:
    found = tpusmi(tmp_path, *command, "\x1b]0;x\x07" + 100_000 * "y")
    assert found.returncode == 2
    assert found.stderr.replace("\n", "").isprintable()
    assert len(found.stderr) < 2000


def test_ps_without_a_tpu_names_the_jobs_that_run_without_one(job: Path) -> None:
    found = tpusmi(job, "ps")
    assert (found.returncode, "no TPU here: " in found.stdout) == (1, True)
    assert f"1 job without a TPU (pid {os.getpid()}): see tpusmi -1\n" in found.stdout
    assert "without a TPU" not in json.loads(tpusmi(job, "ps", "--json").stdout)


def test_without_a_tpu_or_a_job_each_source_says_why_on_a_line_of_its_own(tmp_path: Path) -> None:
    first, *sources = tpusmi(tmp_path, "-L").stderr.splitlines()
    assert first == "tpusmi: no TPU and no agent here:"
    names = [line.partition(":")[0] for line in sources]
    assert names == ["  agent", "  sysfs", "  holders", "  libtpu", "  libtpu_sdk"]


def test_the_help_of_the_demo_is_about_the_demo(tmp_path: Path) -> None:
    found = tpusmi(tmp_path, "demo", "--help")
    assert found.stdout.startswith("usage: tpusmi demo [options]")
    assert "first steps" in found.stdout


def test_the_demo_without_jax_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'jax' else find(name, *a)\n"
        "from tpusmi.cli import main; sys.exit(main(['demo']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True
    )
    assert found.returncode == 1
    assert "pip install 'tpusmi[demo]'" in found.stderr


def test_a_loop_with_a_count_ends_with_the_code_of_its_last_time(job: Path, tmp_path: Path) -> None:
    lines = tpusmi(job, "--json", "--count", "3", "-lms", "100").stdout.splitlines()
    assert [json.loads(line)["schema"] for line in lines] == [1, 1, 1]
    csv = tpusmi(job, "--query-tpu=index", "--format=csv", "--count=2", "-l", "0.1")
    assert (csv.returncode, csv.stdout) == (0, "index\n0\n1\n0\n1\n")
    table = tpusmi(job, "--count", "2", "--watch", "0.1")
    assert table.stdout.count("python train.py") == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    assert tpusmi(empty, "-L", "--count", "2", "-lms", "100").returncode == 1


def test_a_count_without_an_interval_prints_every_second(job: Path) -> None:
    before_s = time.monotonic()
    assert len(tpusmi(job, "-L", "--count", "2").stdout.splitlines()) == 4
    assert time.monotonic() - before_s >= 1.0


def test_words_of_tpu_info_do_what_they_do_there(job: Path) -> None:
    assert len(tpusmi(job, "--streaming", "--rate", "0.1", "--count", "2", "-L").stdout) > 0
    assert '"memory.used"' in tpusmi(job, "--list_metrics").stdout


def test_a_device_that_is_not_here_is_named_beside_those_that_are(job: Path) -> None:
    found = tpusmi(job, "--id", "0,77,x", "-L")
    assert (found.returncode, found.stdout.count("TPU 0")) == (0, 1)
    assert found.stderr == "tpusmi: not here: device 77, device x\n"
    found = tpusmi(job, "--simulate", "v5e-1", "--only", "chip=0,5-6", "-L")
    assert (found.returncode, found.stderr) == (0, "tpusmi: not here: chips 5-6\n")


def test_options_before_a_command_reach_it(job: Path) -> None:
    before = tpusmi(job, "--simulate", "v5e-1", "--ascii", "ps", "--chip", "0")
    after = tpusmi(job, "ps", "--simulate", "v5e-1", "--ascii", "--chip", "0")
    assert (before.returncode, before.stdout.splitlines()[0]) == (
        after.returncode,
        after.stdout.splitlines()[0],
    )
    assert (after.returncode, after.stderr + before.stderr) == (5, "")
    assert before.stdout.isascii()


def test_jobs_that_have_ended_are_not_called_an_agent_that_is_missing(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, segments.dead_identity(), devices=1)
    writer.append(segments.slot(1.0, segments.RUNNING, [segments.device()], time.time() - 3000))
    found = tpusmi(tmp_path, "-L")
    assert found.returncode == 1
    assert found.stderr.startswith("tpusmi: no TPU here:\n  agent: 1 job that has ended\n")


@pytest.mark.parametrize(
    ("variables", "flags", "colored"),
    [
        ({"FORCE_COLOR": "1"}, [], True),
        ({"CLICOLOR_FORCE": "1"}, [], True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, [], True),
        ({"FORCE_COLOR": ""}, [], False),
        ({"FORCE_COLOR": "0"}, [], False),
        ({"CLICOLOR_FORCE": "0"}, [], False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, [], True),
        ({"FORCE_COLOR": "1"}, ["--no-color"], False),
        ({"NO_COLOR": "1"}, ["--color"], True),
    ],
    ids=str,
)
def test_variables_force_colors_and_flags_beat_them(
    job: Path, variables: dict[str, str], flags: list[str], colored: bool
) -> None:
    assert ("\x1b[" in tpusmi(job, "-1", *flags, **variables).stdout) is colored


def test_in_a_pipe_a_table_is_as_wide_as_columns_says_and_without_it_as_wide_as_it_likes(
    job: Path,
) -> None:
    def width(**variables: str | None) -> int:
        return max(map(len, tpusmi(job, "-1", **variables).stdout.splitlines()))

    assert width(COLUMNS="60") <= 60 < width(COLUMNS=None)
    assert width(COLUMNS="0") == width(COLUMNS="many") == width(COLUMNS=None)
