"""A command's options may stand before it and after it, and mean the same in both places."""

from __future__ import annotations

import argparse
import os

import pytest
from support.clocks import takes_at_most

from tpusmi.cli import main
from tpusmi.cli.argument_types import chips
from tpusmi.cli.command_word import COMMANDS, actions, parser_of_command, split
from tpusmi.cli.foreign import COMMANDS as FOREIGN_COMMANDS
from tpusmi.cli.foreign import OPTIONS as FOREIGN_OPTIONS
from tpusmi.cli.options import columns, parser

REQUIRED = {"simulate": ["v5e-8"]}
"""The words without which a command is wrong."""
VALUES = {
    "--id": ["0,1"], "--user": ["alice", "bob"], "--pid": ["1,2"], "--only": ["chip=0-3"],
    "--theme": ["dark"], "--view": ["heat"], "--config": ["a.toml"], "--simulate": ["v5e-8"],
    "--format": ["csv"], "--query-tpu": ["index"], "--query-processes": ["pid"],
    "--time": ["1790000000"], "--at": ["1790000000"],
    "--loop": ["2"], "--loop-ms": ["500"], "--interval": ["3"], "--rate": ["4"], "--count": ["3"],
    "--chip": ["0-1"], "--idle-minutes": ["7"], "--wait-free": ["2"],
    "--signal": ["INT"], "--grace": ["1"], "--wait": ["2"],
    "--host": ["::1"], "--port": ["99"], "--bind": ["::1"], "--slice": ["a"], "--host-name": ["b"],
    "--web-config": ["web.yml"], "--textfile": ["metrics"],
    "--worker": ["1"], "--chips": ["2"], "--processes": ["2"], "--fault": ["hang"],
    "--completion": ["zsh"], "--seed": ["4"], "--age": ["5"], "--freeze": ["6"],
    "--display": ["MEMORY"], "--delay": ["2"], "--select": ["u"], "--options": ["T"],
    "--metrics-port": ["9000"],
    "--duration-ms": ["500"], "--timeout": ["9"], "--cost-seconds": ["0"], "--max-mib": ["64"],
    "--host-tracer-level": ["2"], "--monitoring-level": ["2"], "--top": ["5"], "--every": ["60"],
    "--prometheus": ["http://a:9090"], "--hosts": ["a:8781"], "--match": ['a="b"'],
    "--http-config": ["http.yml"], "--group": ["slice"], "--sort": ["mxu"], "--filter": ["mxu<30"],
    "--save": ["log"], "--compare": ["old.json"],
}  # fmt: skip
"""Values of options, by one name of each."""


def options_of(command: str) -> list[argparse.Action]:
    """The options of a command, without those that print something and end."""
    own = dict.fromkeys(actions(parser_of_command(command)).values())
    if command == "serve-tui":
        own |= dict.fromkeys(actions(parser()).values())
    return [a for a in own if type(a).__name__ not in ("_HelpAction", "_VersionAction")]


def parsed(command: str, words: list[str]) -> dict[str, object]:
    parse = parser_of_command(command)
    if command != "serve-tui":
        return vars(parse.parse_args(words))
    mine, theirs = parse.parse_known_args(words)
    return vars(mine) | vars(parser().parse_args(theirs))


CASES = [
    (command, name)
    for command in COMMANDS
    for a in options_of(command)
    for name in a.option_strings
]


@pytest.mark.parametrize(("command", "name"), CASES)
def test_an_option_before_a_command_means_what_it_means_after_it(command: str, name: str) -> None:
    (option,) = [a for a in options_of(command) if name in a.option_strings]
    values = (
        [] if option.nargs == 0 else next(VALUES[n] for n in option.option_strings if n in VALUES)
    )
    values = values if option.nargs in ("*", "+") else values[:1]
    required = REQUIRED.get(command, [])
    after = split([command, *required, name, *values])
    before = split([name, *values, command, *required])
    assert before[0] == after[0] == command
    meant = parsed(command, after[1])
    assert parsed(command, before[1]) == meant
    assert meant != parsed(command, required), "the option is lost"


@pytest.mark.parametrize("command", COMMANDS)
def test_options_before_and_after_a_command_add_up(command: str) -> None:
    required = REQUIRED.get(command, [])
    if command == "simulate":
        name, words = split(["--agent", command, *required, "--worker", "1"])
        assert parsed(name, words)["agent"] is True
        return
    name, words = split(["--simulate", "v5e-8", command, *required, "--no-color"])
    found = parsed(name, words)
    assert (found["simulate"], found["no_color"]) == ("v5e-8", True)


@pytest.mark.parametrize(
    ("line", "command", "rest"),
    [
        ("", "", ""),
        ("--json", "", "--json"),
        ("ps", "ps", ""),
        ("--json ps --tree", "ps", "--json --tree"),
        ("--simulate ps", "", "--simulate ps"),
        ("--simulate ps ps", "ps", "--simulate ps"),
        ("--simulate=v5e-8 ps", "ps", "--simulate=v5e-8"),
        ("-l demo", "demo", "-l"),
        ("-l 5 demo", "demo", "-l 5"),
        ("-l5 demo", "demo", "-l5"),
        ("-1l demo", "demo", "-1l"),
        ("--watch demo", "demo", "--watch"),
        ("-u demo", "", "-u demo"),
        ("-u alice demo", "demo", "-u alice"),
        ("-u alice bob ps", "ps", "-u alice bob"),
        ("-p 1 2 demo", "demo", "-p 1 2"),
        ("--config kill", "", "--config kill"),
        ("--chip 0 kill 123", "kill", "--chip 0 123"),
        ("--nonsense ps", "ps", "--nonsense"),
        ("foo ps", "", "foo ps"),
        ("-- ps", "", "-- ps"),
        ("kill ps", "kill", "ps"),
    ],
)  # fmt: skip
def test_a_word_is_the_command_unless_an_option_takes_it(
    line: str, command: str, rest: str
) -> None:
    assert split(line.split()) == (command, rest.split())


def test_a_long_line_of_commands_takes_no_time_to_understand() -> None:
    words = ["nonsense", *["ps"] * 100_000]
    with takes_at_most(1.0):
        assert split(words) == ("", words)


def test_every_command_is_in_the_help() -> None:
    text = parser().format_help()
    lines = [line for line in text.splitlines() if line.startswith("  tpusmi ")]
    assert [line.split()[1] for line in lines[1:]] == [*COMMANDS]
    assert max(map(len, lines)) <= 80


def test_no_word_of_another_tool_has_a_meaning_here() -> None:
    ours = [name for name in ("", *COMMANDS) if name not in ("dmon", "pmon", "topo")]
    taken = {name for command in ours for name in actions(parser_of_command(command))}
    taken -= {"--filter"}  # of tpusmi fleet alone: elsewhere tpu-info's gets its answer
    assert {word for words in FOREIGN_OPTIONS for word in words} & taken == set()
    assert {word for words in FOREIGN_COMMANDS for word in words} & {*COMMANDS} == set()


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("0", [0]), ("0,2", [0, 2]), ("0-3", [0, 1, 2, 3]), ("5, 0-1", [5, 0, 1]), ("4-4", [4])],
)
def test_chips_are_numbers_and_ranges(text: str, chosen: list[int]) -> None:
    assert chips(text) == chosen


def test_many_ranges_may_not_name_more_chips_than_one() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="more than 4096 chips"):
        chips(",".join(["0-4000"] * 9))


@pytest.mark.parametrize(
    ("value", "width"),
    [("80", 80), ("", None), ("0", None), ("-5", None), ("x", None), ("٣", None), ("9" * 50, None)],
)
def test_without_a_terminal_the_width_is_that_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, value: str, width: int | None
) -> None:
    def no_terminal(descriptor: int = 1) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    monkeypatch.setenv("COLUMNS", value)
    assert columns() == width


@pytest.mark.parametrize(
    ("line", "words"),
    [("dmon -c 0", "-c"), ("pmon -o X", "-o"), ("topo -c 1", "-c"), ("-c", "-c")],
)
def test_an_option_that_a_command_takes_is_not_answered_as_one_of_another_tool(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, rest = split(line.split())
    with pytest.raises(SystemExit):
        parser_of_command(command).parse_args(rest)
    assert (f"tpusmi has no {words}" in capsys.readouterr().err) == (not command)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ps --cuont", "tpusmi ps has no option --cuont\n"),
        ("--json=yes", "--json takes no value, such as 'yes'"),
        ("ps --sumilate", "did you mean --simulate?"),
        ("topo -c 1", "topo does not take -c: it is an option of tpusmi dmon and tpusmi pmon"),
        ("-- ps", "tpusmi takes nothing after --"),
        ("--count 99999999999", "--count: 99999999999 is too large"),
        ("--count 00", "--count: 00 is not a whole number from 1 up"),
        ("pmon -s ux", '-s: "x" is not a group of columns; there are p, u, m'),
    ],
)
def test_a_usage_error_is_about_what_is_wrong(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    assert words in capsys.readouterr().err
