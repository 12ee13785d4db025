"""What a Tab offers: values that fit, and nothing odd that another user has put on the host."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tpusmi.cli import completers
from tpusmi.cli.command_word import COMMANDS, parser_of_command

EMPTY = argparse.Namespace()


def offered(make: object, prefix: str = "", is_list: bool = True) -> dict[str, str]:
    return completers._completer(make, is_list)(prefix=prefix, parsed_args=EMPTY)  # type: ignore[arg-type]


def test_every_option_with_values_has_them_or_takes_numbers_or_free_text() -> None:
    free = {
        "--loop", "--loop-ms", "--interval", "--rate", "--count",
        "--idle-minutes", "--wait-free", "--grace", "--wait", "--host", "--port", "--worker",
        "--chips", "--processes", "--seed", "--age", "--at", "--freeze",
        "--delay", "--select", "--metrics-port", "--bind", "--slice", "--host-name",
        "--duration-ms", "--timeout", "--cost-seconds", "--max-mib", "--top", "--every",
        "--prometheus", "--hosts", "--match", "--simulate", "--filter", "--sort",
        *completers.FILES,
    }  # fmt: skip
    for command in ("", *COMMANDS):
        for action in parser_of_command(command)._actions:
            names = {*action.option_strings} or {action.dest}
            has_values = action.nargs == 0 or action.choices is not None
            assert has_values or names & (free | {*completers.VALUES}), names


def test_each_word_of_a_list_is_offered_after_the_others_and_once() -> None:
    values = {"a": "first", "b": "second"}
    assert offered(lambda _: values) == values
    assert offered(lambda _: values, "a,") == {"a,b": "second"}
    assert offered(lambda _: values, "a,", is_list=False) == values


def test_odd_names_are_not_offered_and_meanings_are_cleaned_and_cut() -> None:
    found = offered(
        lambda _: {"7": "python \x1b]0;x\x07\n" + 5000 * "y", "8\n9": "", "\x1b[2J": ""}
    )
    assert list(found) == ["7"]
    assert found["7"].isprintable()
    assert len(found["7"]) <= completers.MEANING_MOST + 1


def test_a_host_that_cannot_be_looked_at_offers_nothing() -> None:
    def fails(_: argparse.Namespace) -> dict[str, str]:
        raise OSError

    assert offered(fails) == {}


def test_what_runs_here_is_not_offered_for_a_simulated_host_that_is_yet_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tpusmi.collect.look", lambda *_, **__: pytest.fail("it was looked at"))
    for name in ("pids", "--id", "--chip", "--user", "--pid"):
        values = completers._completer(completers.VALUES[name], True)
        assert values(prefix="", parsed_args=argparse.Namespace(simulate="v5e-8")) == {}


def test_directories_that_only_look_like_simulated_hosts_are_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("$(touch x)", "a b", "a\nb", "x" * 90, "abcd1234"):
        (tmp_path / f"tpusmi-simulated-{name}").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert [d for d in completers._directories() if str(tmp_path) in d] == []


def test_a_fleet_is_not_offered_the_directory_of_a_simulated_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completers, "_directories", lambda: ["/dev/shm/tpusmi-simulated-a"])
    of_host = completers._hosts(argparse.Namespace(simulate=""))
    of_fleet = completers._hosts(argparse.Namespace(simulate="", prometheus=None))
    assert of_host.keys() - of_fleet.keys() == {"/dev/shm/tpusmi-simulated-a"}
    assert "v5e-8" in of_fleet


def test_types_are_offered_where_a_directory_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    assert "v5e-8" in offered(completers.VALUES["--simulate"])


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("tpusmi-simulated-ab_c1234", True),
        ("tpusmi-simulated-", False),
        ("tpusmi-simulated-a b", False),
        ("tpusmi-simulated-" + 17 * "a", False),
        ("other-ab_c1234", False),
        ("abcd1234", False),
    ],
)
def test_only_the_name_of_a_simulated_hosts_directory_is_looked_into(
    name: str, is_ours: bool
) -> None:
    assert completers._is_ours(name) is is_ours


def test_a_section_of_the_full_report_is_offered_with_its_title() -> None:
    assert offered(completers.VALUES["--display"], "MEMORY,")["MEMORY,PCI"] == "PCI"
