"""The flags of capture_tpu_profile mean the same in `tpusmi profile`."""

from __future__ import annotations

import argparse
import os

import pytest

from tpusmi.cli import capture_tpu_profile as old
from tpusmi.cli import profile
from tpusmi.cli.command_word import split
from tpusmi.profiler.capture_target import TargetKind


def meant(line: str, monkeypatch: pytest.MonkeyPatch) -> argparse.Namespace:
    """What `tpusmi profile` is asked for."""
    asked: list[argparse.Namespace] = []

    def run(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr(profile, "run_parsed", run)
    command, words = split(["capture_tpu_profile", *line.split()])
    assert command == "capture_tpu_profile"
    assert old.run(words) == 0
    return asked[0]


@pytest.mark.parametrize(
    ("line", "addresses"),
    [
        ("--service_addr=10.0.0.2:8470", ["10.0.0.2:8470"]),
        ("--service_addr grpc://10.0.0.2", ["10.0.0.2:8466"]),
        ("--service_addr a:1,b", ["a:1", "b:8466"]),
        ("--service_addr [::1]", ["[::1]:8466"]),
        ("--service_addr [::1]:9", ["[::1]:9"]),
        ("--tpu local --workers_list=10.0.0.2,10.0.0.3:1", ["10.0.0.2:8466", "10.0.0.3:1"]),
        ("--tpu 10.0.0.2", ["10.0.0.2:8466"]),
        ("--tpu grpc://10.0.0.2:8470", ["10.0.0.2:8470"]),
        ("--tpu=local", []),
        (f"--tpu_name={os.uname().nodename}", []),
        ("", []),
    ],
)
def test_addresses_have_the_old_port_and_local_is_the_job_that_runs_here(
    line: str, addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = meant(line, monkeypatch).targets
    assert [str(t.address) for t in targets] == addresses
    assert {t.kind for t in targets} <= {TargetKind.ADDRESS}


def test_without_monitoring_it_traces_once_for_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOGS", "/tmp/logs")
    options = meant("--logdir=$LOGS/a --num_tracing_attempts=2", monkeypatch)
    assert (options.save, options.duration_ms, options.attempts) == ("/tmp/logs/a", 2000, 2)
    assert (options.every, options.monitoring_level, options.host_tracer_level) == (None, None, 2)


def test_monitoring_repeats_as_often_as_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "--monitoring_level=1 --num_queries=7 --nodisplay_timestamp --include_dataset_ops=false"
    options = meant(words, monkeypatch)
    assert (options.monitoring_level, options.count, options.duration_ms) == (1, 7, 1000)
    assert options.every > 0
    assert options.timestamps is False
    assert meant("--monitoring_level=2 --display_timestamp=true", monkeypatch).timestamps is True


def test_what_is_for_googles_api_has_no_effect_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meant("--tpu local --tpu_zone us-central2-b --gcp_project mine", monkeypatch)
    assert len(capsys.readouterr().err.splitlines()) == 2
