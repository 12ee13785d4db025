"""nvidia-smi's commands and options on a simulated host, as a script would use them."""

from __future__ import annotations

import re
import subprocess

import pytest
from support import commands
from support.commands import TPUSMI, environment
from support.simulated_hosts import host_of

from tpusmi.model import Host

host = host_of("v5e-4")


def tpusmi(host: Host, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return commands.tpusmi(host.root, *words, "--simulate", host.root, **variables)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_dmon_prints_as_often_as_it_is_told(host: Host) -> None:
    found = tpusmi(host, "dmon", "-d", "0.1", "-c", "3", "-i", "0,2-3")
    assert (found.returncode, found.stderr) == (0, "")
    assert [line[0] for line in lines(found.stdout)] == ["0", "2", "3"] * 3
    assert found.stdout.splitlines()[0].split()[:2] == ["#", "tpu"]


def test_dmon_is_quiet_when_its_reader_has_seen_enough(host: Host) -> None:
    command = [*TPUSMI, "dmon", "-d", "0.1", "--simulate", host.root]
    with subprocess.Popen(
        command, env=environment(host.root),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().startswith("# tpu")
        child.stdout.close()
        assert child.wait(60) == 0
        assert child.stderr.read() == ""


def test_pmon_names_the_process_on_each_device(host: Host) -> None:
    found = tpusmi(host, "pmon", "-c", "1")
    pids = {line[1] for line in lines(found.stdout)}
    holders = tpusmi(host, "--query-compute-apps=pid", "--format=csv,noheader").stdout
    assert pids == {*holders.split()}


def test_the_matrix_has_a_row_for_each_device(host: Host) -> None:
    found = tpusmi(host, "topo", "-m")
    assert found.returncode == 0
    rows = found.stdout.split("\n\n")[0].splitlines()
    assert [row.partition("\t")[0] for row in rows] == ["", *(f"TPU{n}" for n in range(4))]


def test_the_full_report_of_one_device_has_its_uuid_and_its_memory(host: Host) -> None:
    listed = tpusmi(host, "-L").stdout
    (uuid,) = re.findall(r"TPU 2: .*\(UUID: (\S+)\)", listed)
    report = tpusmi(host, "-q", "--id", uuid).stdout
    assert f": {uuid}\n" in report
    assert report.count("HBM Memory Usage") == 1
    assert ": 16384 MiB\n" in report


@pytest.mark.parametrize("word", ["0000:00:06.0", "00000000:00:06.0", "00:06.0", "vfio/3", "2"])
def test_a_device_has_many_names(host: Host, word: str) -> None:
    found = tpusmi(host, "--id", word, "--query-gpu=index", "--format=csv,noheader")
    assert (found.returncode, found.stdout) == (0, "2\n")


def test_only_the_chips_of_the_environment_are_listed(host: Host) -> None:
    listed = tpusmi(host, "-ov", "-L", TPU_VISIBLE_CHIPS="1,3").stdout
    assert [line.partition(":")[0] for line in listed.splitlines()] == ["TPU 1", "TPU 3"]
    wrong = tpusmi(host, "-ov", "-L", TPU_VISIBLE_CHIPS="one")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "TPU_VISIBLE_CHIPS: one is not" in wrong.stderr


def test_a_filter_of_processes_leaves_the_devices_in_sight_and_says_that_no_process_matches(
    host: Host,
) -> None:
    found = tpusmi(host, "-1", "-p", "1")
    assert found.stdout.count("\ntpu:") == 4
    assert (found.returncode, found.stderr) == (1, "tpusmi: No process matches.\n")
    assert tpusmi(host, "-L", "-p", "1").stdout == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-q", "-d", "FOO"), '"FOO" is not a section; there are PCI, MEMORY'),
        (("-q", "-i", "1"), "-i is the interval: --id chooses devices"),
        (("-d", "MEMORY"), "-d chooses sections of -q"),
        (("dmon", "-s", "z"), '"z" is not a group of columns; there are p, u, m'),
        (("--metrics-port", "8476"), "port 8476 is that of another service"),
        (("--query-gpu=foo", "--format=csv"), 'Field "foo" is not a valid field to query.'),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    host: Host, words: tuple[str, ...], sentence: str
) -> None:
    found = tpusmi(host, *words)
    assert (found.returncode, found.stdout) == (2, "")
    assert sentence in found.stderr
