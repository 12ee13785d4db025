"""`tpusmi profile` on a real JAX job, through its agent and its profiler service, and on files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import TPUSMI, USER, environment, tpusmi
from support.free_ports import free_port
from support.jobs import Job, job
from support.requirements import HOST_EVENTS_OVER_GRPC
from support.terminals import terminal
from support.users import reachable
from support.waits import LIMIT_S, until

import tpusmi as api
from tpusmi.report.profile.profile_schema import json_schema

TRACES = Path(__file__).parents[1] / "data" / "xplane"
V6E = TRACES / "v6e-4_inference" / "tpu_inference.xplane.pb"
PAGES = TRACES.parent / "xprof_pages" / "v2-8_resnet"
SCHEMA = json_schema()
STEPS = """
    tpusmi.start()
    import time, jax, jax.numpy as jnp
    port = int(os.environ["PORT"])
    jax.profiler.start_server(port)
    step = jax.jit(lambda x: jnp.tanh(x @ x) * 0.1)
    x = step(jnp.ones((200, 200))).block_until_ready()
    say("ready")
    i = 0
    while True:
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            x = step(x).block_until_ready()
        tpusmi.step()
        i += 1
        time.sleep(0.005)
    """
FAST = ("--no-xprof", "--cost-seconds", "0", "--duration-ms", "100")


class Place:
    """A job, and where the command looks for it and keeps its own files."""

    def __init__(self, directory: Path, running: Job, port: int) -> None:
        self.directory, self.job, self.port = directory, running, port
        self.pid = str(running.pid)
        self.own = directory.parent / "own"

    def run(self, *arguments: str, **more: str | None) -> subprocess.CompletedProcess[str]:
        """`tpusmi profile` with these arguments, to its end; it leaves no file of its own."""
        done = tpusmi(self.directory, "profile", *arguments, TMPDIR=str(self.own), **more)
        assert [*self.own.iterdir()] == [], done
        return done

    def begun(self, *arguments: str) -> subprocess.Popen[str]:
        """The command, once it captures."""
        command = subprocess.Popen(
            [*TPUSMI, "profile", *arguments, "--progress"],
            env=environment(self.directory, TMPDIR=str(self.own)), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert command.stderr is not None
        for line in command.stderr:
            if re.search("capturing|connecting", line, re.IGNORECASE):
                return command
        raise AssertionError("it has ended before it captured anything")

    def left(self) -> list[str]:
        """Files that a capture has left: the command's own, and those beside the segment, of which
        the agent removes some within a second or two.
        """
        beside = [p.name for p in self.directory.iterdir() if p.suffix != ".seg"]
        return beside + [p.name for p in self.own.iterdir()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One JAX job with steps, an agent and a profiler service, for all tests of this file."""
    directory, port = tmp_path_factory.mktemp("job") / "segments", free_port()
    for path in (directory, directory.parent / "own"):
        path.mkdir()
    with job(directory, STEPS, PORT=str(port)) as running:
        assert running.hear() == "ready"
        yield Place(directory, running, port)


def checked(text: str) -> dict[str, Any]:
    """The object, after it was checked against the schema that is published."""
    jsonschema = pytest.importorskip("jsonschema")
    value: dict[str, Any] = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    return value


def profile_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert (done.returncode, done.stderr) == (0, "")
    return checked(done.stdout)


def test_a_pid_is_captured_through_its_agent(place: Place) -> None:
    p = profile_of(place.run(place.pid, "--json", *FAST[:-1], "400"))
    capture = p["capture"]
    assert (capture["how"], capture["target"]) == ("agent", place.pid)
    assert (capture["pid"], capture["asked_s"]) == (place.job.pid, 0.4)
    assert capture["took_s"] > 0.1
    assert capture["trace_bytes"] > 0
    assert p["backend"] == "cpu"
    assert p["steps"]["whole"] >= 2
    assert p["mxu_percent"] is None
    assert p["operations"]


def test_without_a_target_it_captures_the_only_job_and_prints_a_page(place: Place) -> None:
    done = place.run(*FAST)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"pid {place.pid}" in done.stdout
    assert "OPERATIONS" in done.stdout
    assert "\x1b" not in done.stdout


@HOST_EVENTS_OVER_GRPC
def test_an_address_is_captured_over_grpc(place: Place) -> None:
    capture = profile_of(place.run(f":{place.port}", "--json", *FAST))["capture"]
    assert (capture["how"], capture["target"]) == ("grpc", f":{place.port}")


def test_the_cost_of_a_capture_is_measured_by_the_agent(place: Place) -> None:
    """A job that has just begun has no rate before the capture, and a busy machine samples late."""
    words = ("--json", "--no-xprof", "--duration-ms", "200", "--cost-seconds", "1.5")

    def rates() -> list[float]:
        cost = profile_of(place.run(place.pid, *words))["capture"]["cost"]
        found = [cost[f"steps_per_s_{when}"] for when in ("before", "during", "after")]
        return [] if None in found else found

    assert min(until(rates)) > 0


def test_of_several_targets_the_others_are_printed_when_one_fails(place: Place) -> None:
    closed = f":{free_port()}"
    done = place.run(place.pid, closed, "--json", *FAST)
    first, second = checked(done.stdout)["hosts"]
    assert done.returncode == 4
    assert first["capture"]["pid"] == place.job.pid
    assert (second["target"], second["error"]["trouble"]) == (closed, "absent")
    page = place.run(place.pid, closed, *FAST)
    assert (page.returncode, page.stderr) == (4, "")
    assert closed in page.stdout


def test_what_is_saved_is_read_again_and_compared(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "new" / "my log"
    done = place.run(place.pid, "--save", str(log), *FAST)
    assert done.returncode == 0
    assert f"xprof --logdir '{log}', or tensorboard --logdir '{log}'" in done.stderr
    (trace,) = log.glob("plugins/profile/*/*.xplane.pb")
    p = profile_of(place.run(str(log), "--json", "--no-xprof"))
    assert p["capture"]["how"] == "file"
    assert p["capture"]["trace_bytes"] == trace.stat().st_size
    compared = place.run(place.pid, "--compare", str(log), *FAST)
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "old" in compared.stdout
    assert "new" in compared.stdout
    saved = tmp_path / "old.json"
    saved.write_text(json.dumps(p))
    both = profile_of(place.run(str(log), "--compare", str(saved), "--json", "--no-xprof"))
    assert both["old"]["steps"] == both["new"]["steps"] == p["steps"]


def test_a_loop_prints_a_line_for_each_capture(place: Place) -> None:
    words = ("--every", "0.1", "--count", "2", *FAST)
    done = place.run(place.pid, *words)
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert "STEP" in header
    assert len(lines) == 2
    objects = place.run("--json", *words).stdout.splitlines()
    assert [json.loads(line)["capture"]["pid"] for line in objects] == 2 * [place.job.pid]


def test_a_capture_that_fails_does_not_end_the_loop(place: Place) -> None:
    closed = f":{free_port()}"
    done = place.run(closed, "--every", "0.1", "--count", "2", "--json", *FAST)
    assert done.returncode == 1
    lines = [checked(line) for line in done.stdout.splitlines()]
    assert [line["error"]["trouble"] for line in lines] == ["absent", "absent"]
    assert len(done.stderr.splitlines()) == 2


@HOST_EVENTS_OVER_GRPC
def test_the_old_command_and_its_flags_work(place: Place) -> None:
    done = tpusmi(
        place.directory, "capture_tpu_profile", f"--service_addr=localhost:{place.port}",
        "--monitoring_level=2", "--num_queries=1", "--duration_ms=400",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Utilization of TPU Matrix Units (higher is better): –" in done.stdout
    assert "Step time: " in done.stdout


def test_progress_is_on_stderr_only(place: Place) -> None:
    done = place.run(place.pid, "--json", "--progress", *FAST)
    assert json.loads(done.stdout)
    lines = done.stderr.splitlines()
    assert all(line.startswith("tpusmi: ") for line in lines)
    assert any("capturing" in line for line in lines)


def test_a_terminal_shows_one_line_of_progress_and_then_the_page(place: Place) -> None:
    command = [*TPUSMI, "profile", place.pid, *FAST[:-1], "4000"]
    env = environment(place.directory, TMPDIR=str(place.own))
    with terminal(command, env, 100, 60) as shown:
        shown.see_match(r"OPERATIONS")
        assert re.search(rb"capturing \(\d+ s\)", shown.written)
        assert b"\r\x1b[K" in shown.written
        assert "capturing" not in shown.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_capture_that_is_interrupted_leaves_nothing_and_harms_no_job(
    number: signal.Signals, place: Place
) -> None:
    command = place.begun(place.pid, "--duration-ms", "5000")
    command.send_signal(number)
    assert command.wait(LIMIT_S) == 130
    out, errors = command.communicate()
    assert (out, "Traceback" in errors) == ("", False)
    assert until(lambda: place.left() == [])
    assert place.job.process.poll() is None
    # JAX still traces what was asked for: the next capture waits for it, or is refused as busy.
    assert until(lambda: place.run(place.pid, *FAST).returncode == 0)


def test_a_killed_run_leaves_a_folder_that_the_next_one_removes(place: Place) -> None:
    command = place.begun(f":{place.port}", "--duration-ms", "300")
    command.kill()
    command.communicate()
    assert [*place.own.iterdir()] != []
    done = until(lambda: (d := place.run(place.pid, *FAST)).returncode == 0 and d)
    assert "OPERATIONS" in done.stdout


def test_a_second_capture_at_the_same_time_is_refused(place: Place) -> None:
    first = place.begun(place.pid, "--duration-ms", "4000", *FAST[:3])
    second = tpusmi(place.directory, "profile", place.pid, *FAST)
    assert (second.returncode, second.stdout) == (5, "")
    assert "captured already" in second.stderr or "another capture" in second.stderr
    out, _ = first.communicate(timeout=LIMIT_S)
    assert (first.returncode, "OPERATIONS" in out) == (0, True)


def test_a_reader_that_has_left_is_no_error(place: Place) -> None:
    command = shlex.join([*TPUSMI, "profile", place.pid, *FAST])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"],
        env=environment(place.directory), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_it_works_in_an_empty_environment(place: Place) -> None:
    done = subprocess.run(
        [*TPUSMI, "profile", place.pid, *FAST], env={"TPUSMI_DIR": str(place.directory)},
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_another_user_may_not_capture_the_job(place: Place) -> None:
    done = tpusmi(place.directory, "profile", place.pid, *FAST, user=USER)
    assert (done.returncode, done.stdout) == (3, "")
    assert "belongs to" in done.stderr


def test_a_job_that_forbids_captures_is_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "segments"
    directory.mkdir()
    code = "tpusmi.start(); say('ready'); hear()"
    with job(directory, code, TPUSMI_PROFILE="0") as running:
        running.hear()
        found = until(lambda: _refused(directory, running.pid))
    assert "TPUSMI_PROFILE=0" in found


def _refused(directory: Path, pid: int) -> str:
    done = tpusmi(directory, "profile", str(pid), *FAST)
    return done.stderr if done.returncode == 3 else ""


def test_of_several_jobs_the_user_chooses(place: Place, tmp_path: Path) -> None:
    code = "tpusmi.start(); say('ready'); hear()"
    with job(place.directory, code) as other:
        other.hear()
        done = until(lambda: (d := place.run(*FAST)).returncode == 2 and d)
    lines = done.stderr.splitlines()
    assert lines[0] == "tpusmi: several jobs can be profiled: tpusmi profile PID"
    assert {line.split()[0] for line in lines[2:]} == {place.pid, str(other.pid)}
    until(lambda: place.run(*FAST).returncode == 0)


def test_python_gets_the_profile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUSMI_DIR", str(place.directory))
    p = api.profile(place.job.pid, 100, xprof=False, cost_s=0)
    assert p.capture.pid == place.job.pid
    (same,) = api.profile([place.job.pid], 100, xprof=False, cost_s=0)
    assert same.backend == p.backend == "cpu"


# Files and mistakes, without a job


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"target": "x", "duration_ms": 5}, ValueError, "from 10 to 60000"),
        ({"target": "x", "duration_ms": "5"}, TypeError, "a whole number"),
        ({"target": "x", "cost_s": -1}, ValueError, "from 0 to 600"),
        ({"target": []}, ValueError, "is empty"),
        ({"target": 1.5}, TypeError, "a pid, an address or a path"),
        ({"target": True}, TypeError, "a pid, an address or a path"),
        ({"target": "gs://x"}, ValueError, "local files"),
        ({"target": "absent.pb"}, api.CaptureError, "no such file"),
    ],
)
def test_a_wrong_argument_says_what_was_expected(
    arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        api.profile(**arguments)


def test_a_path_in_python_may_be_a_path_object() -> None:
    p = api.profile(V6E, xprof=False)
    assert (p.capture.how, p.device_type) == ("file", "TPU v6 Lite")


@pytest.fixture
def nothing(tmp_path: Path) -> Path:
    directory = tmp_path / "segments"
    directory.mkdir()
    return directory


def test_where_nothing_runs_the_sentence_says_what_to_do(nothing: Path) -> None:
    done = tpusmi(nothing, "profile")
    assert (done.returncode, done.stdout) == (1, "")
    assert "tpusmi.start()" in done.stderr


def test_a_process_without_an_agent_is_told_what_makes_it_possible(nothing: Path) -> None:
    done = tpusmi(nothing, "profile", str(os.getpid()))
    assert done.returncode == 1
    assert "has no agent" in done.stderr
    assert "start_server(9012)" in done.stderr
    gone = tpusmi(nothing, "profile", "4194303")
    assert (gone.returncode, "start_server" in gone.stderr) == (1, False)


def test_files_are_read_in_readonly_mode_and_captures_refused(nothing: Path) -> None:
    done = tpusmi(nothing, "profile", TPUSMI_MODE="readonly")
    assert (done.returncode, "only files can be read" in done.stderr) == (2, True)
    words = ("--readonly", "--no-xprof", str(V6E), "--json")
    p = json.loads(tpusmi(nothing, "profile", *words).stdout)
    assert p["device_type"] == "TPU v6 Lite"
    with pytest.raises(PermissionError, match="readonly"):
        _in_readonly_mode()


def _in_readonly_mode() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPUSMI_MODE", "readonly")
        api.profile(1)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("corrupt_utf8_mangled/tpu_inference.xplane.pb", 4),
        ("../README.md", 4),
        ("absent.xplane.pb", 1),
        (".", 1),
    ],
)
def test_a_file_that_is_no_trace_is_a_sentence_and_a_code(
    name: str, code: int, nothing: Path
) -> None:
    path = TRACES / name if name != "." else nothing
    done = tpusmi(nothing, "profile", str(path), "--no-xprof")
    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "code", "trouble"),
    [
        (str(TRACES / "corrupt_utf8_mangled/tpu_inference.xplane.pb"), 4, "unreadable"),
        ("/absent.xplane.pb", 1, "absent"),
        (None, 1, "absent"),  # no job runs here
    ],
)
def test_as_json_the_only_target_that_failed_is_an_object_as_it_is_in_a_loop(
    target: str | None, code: int, trouble: str, nothing: Path
) -> None:
    done = tpusmi(nothing, "profile", *filter(None, [target]), "--no-xprof", "--json")
    failure = checked(done.stdout)
    assert (done.returncode, failure["error"]["trouble"]) == (code, trouble)
    assert failure["target"] == (target or "")
    assert failure["error"]["message"] in " ".join(done.stderr.split())


def test_json_has_all_operations_unless_told_how_many(nothing: Path) -> None:
    """A program of tens of thousands makes megabytes: the dashboard asks for the longest."""
    words = ("profile", str(V6E), "--no-xprof", "--json")
    whole, part = (profile_of(tpusmi(nothing, *words, *more)) for more in ((), ("--top", "3")))
    assert len(whole["operations"]) == 17
    assert part["operations"] == whole["operations"][:3]


def test_a_truncated_empty_or_odd_file_is_a_sentence(nothing: Path) -> None:
    data = V6E.read_bytes()
    os.mkfifo(nothing / "pipe")
    for name, content in (("cut.pb", data[: len(data) // 2]), ("empty.pb", b"")):
        (nothing / name).write_bytes(content)
    for name in ("cut.pb", "empty.pb", "pipe"):
        done = tpusmi(nothing, "profile", str(nothing / name), "--no-xprof")
        assert (done.returncode, len(done.stderr.splitlines())) == (4, 1), done


def test_the_pages_of_a_real_run_are_a_profile(nothing: Path) -> None:
    done = tpusmi(nothing, "profile", str(PAGES), "--json")
    assert profile_of(done)["mxu_percent"] == pytest.approx(48.8, abs=0.1)


def test_a_file_of_another_user_is_a_sentence(nothing: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.xplane.pb"
    shutil.copy(V6E, copy)
    copy.chmod(0o600)
    with reachable(tmp_path):
        done = tpusmi(nothing, "profile", str(copy), user=USER)
    assert (done.returncode, "no permission" in done.stderr) == (3, True)


def test_a_folder_that_cannot_be_written_is_refused_before_the_capture(nothing: Path) -> None:
    done = tpusmi(nothing, "profile", str(V6E), "--save", "/proc/log")
    assert (done.returncode, done.stdout) == (4, "")
    assert "--save /proc/log" in done.stderr


def test_a_trace_that_cannot_be_saved_does_not_cost_the_page(nothing: Path) -> None:
    (nothing / "plugins").write_text("in the way")
    done = tpusmi(nothing, "profile", str(V6E), "--no-xprof", "--save", str(nothing))
    assert (done.returncode, "OPERATIONS" in done.stdout) == (4, True)
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_for_traces_is_not_left_behind_empty(nothing: Path) -> None:
    folder = nothing / "log" / "of today"
    (nothing / "log").mkdir()
    done = tpusmi(nothing, "profile", str(nothing / "absent.pb"), "--save", f"{folder}/deep")
    assert (done.returncode, [*nothing.iterdir()]) == (1, [nothing / "log"])
    assert [*(nothing / "log").iterdir()] == []


@pytest.mark.parametrize("options", [("--monitoring-level", "1"), ("--compare", str(V6E))])
def test_output_without_a_place_for_errors_has_them_on_stderr(
    options: tuple[str, str], nothing: Path
) -> None:
    absent = "no\x1b[31msuch.pb"
    done = tpusmi(nothing, "profile", str(V6E), absent, "--no-xprof", *options)
    assert (done.returncode, done.stdout != "") == (4, True)
    assert done.stderr == "tpusmi: no [31msuch.pb: no such file or directory\n"


def test_a_host_that_the_old_capture_lacks_is_not_compared_with_another(nothing: Path) -> None:
    one = json.loads(tpusmi(nothing, "profile", str(V6E), "--no-xprof", "--json").stdout)
    paths = {}
    for name, hosts in (("old", "ab"), ("new", "bc")):
        objects = [{**one, "capture": {**one["capture"], "host": host}} for host in hosts]
        paths[name] = nothing / f"{name}.json"
        paths[name].write_text(json.dumps({"schema": 1, "hosts": objects}))
    done = tpusmi(nothing, "profile", str(paths["new"]), "--compare", str(paths["old"]))
    assert (done.returncode, done.stdout.count("FIGURES")) == (0, 1)
    assert done.stdout.endswith(
        "c: the old capture has no host of this name\na: the new capture has no host of this name\n"
    )


def test_a_target_that_is_named_twice_is_one_target(nothing: Path) -> None:
    trace = str(V6E)
    twice = (trace, os.path.join(os.path.dirname(trace), ".", os.path.basename(trace)))
    done = tpusmi(nothing, "profile", *twice, "--no-xprof", "--json")
    assert (done.returncode, json.loads(done.stdout)["capture"]["target"]) == (0, trace)


def test_under_nohup_a_loop_outlives_its_terminal(place: Place) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command = place.begun(place.pid, "--every", "0.1", *FAST)
    finally:
        signal.signal(signal.SIGHUP, before)
    command.send_signal(signal.SIGHUP)
    assert command.stdout is not None
    assert [command.stdout.readline() != "" for _ in range(3)] == [True] * 3
    command.terminate()
    command.communicate(timeout=LIMIT_S)
    assert command.returncode == 130


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-5", "-5 is not a pid"),
        ("--count 2", "--count needs --every"),
        ("x.pb --every 5", "a file does not change"),
        ("--compare :9012", "--compare takes a trace"),
        ("--compare x.pb --every 5", "do not go together"),
        ("--duration-ms 5", "5 ms is not between 10 and 60000 ms"),
        ("--duration-ms x", "not a whole number"),
        ("--timeout 0", "0 is not between"),
        ("--cost-seconds nan", "nan is not from 0"),
        ("--max-mib 99999", "is more than"),
        ("--save gs://bucket", "not a local directory"),
        ("--json --monitoring-level 1", "not allowed with"),
        ("--duration_ms 5", "did you mean --duration-ms?"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tpusmi.cli import main

    assert main(["profile", *words.split()]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--tpu my-tpu", "Google's API"),
        ("--tpu local --logdir gs://bucket", "not a local directory"),
        ("--service_addr gs://x", "tpusmi reads local files"),
        ("--service_adr x", "did you mean --service_addr?"),
    ],
)
def test_flags_that_need_googles_api_are_a_sentence(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tpusmi.cli import main

    assert main(["capture_tpu_profile", *words.split()]) == 2
    assert sentence in capsys.readouterr().err
