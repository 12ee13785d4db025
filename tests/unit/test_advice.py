"""Every notice says what to do: one table, and no code without a line in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.notice_feeds import MAKERS, PID, host, moment

import tpusmi
from tpusmi import model
from tpusmi.agent import activity, costs, flops
from tpusmi.merge.advice import CODES, OF_AGENTS, ON_DEVICES, TABLE, UNKNOWN_CODE, advised, rows
from tpusmi.merge.causes import CASES
from tpusmi.merge.notices import notices
from tpusmi.model import Notice
from tpusmi.report.columns import DEVICE_COLUMNS
from tpusmi.report.concerns import age, lines

PACKAGE = Path(tpusmi.__file__).parent
ADVICE_MOST = 125
"""Characters: two lines of a narrow terminal."""
TABLE_CASES = [*TABLE, *dict.fromkeys(case.notice for case in CASES if case.notice)]
CONSTANTS = {
    **{name: getattr(model, name) for name in ("STALE_HOLDER", "SUSPECT_HOLDER", "OTHER_MOUNTS")},
    "MISSED": activity.MISSED,
    "IGNORED": flops.IGNORED,
    "UNKNOWN": costs.UNKNOWN,
    "INCOMPLETE": costs.INCOMPLETE,
    "ESTIMATED": costs.ESTIMATED,
    "SILENT_SERVER": "silent_server",
}


def trees(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def word(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return CONSTANTS.get(node.id) if isinstance(node, ast.Name) else None


def calls(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
            yield node


def codes_of_agents() -> set[str]:
    """Codes in `warn(CODE, …)`, `{"code": CODE}`, `notes[CODE] = …`, `notes.setdefault(CODE, …)`,
    `note(…, CODE, …)` and `Cost(…, CODE, …)` of the agent.
    """
    found: set[str | None] = set()
    for _, tree in trees("agent"):
        found |= {word(call.args[0]) for call in calls(tree, "warn")}
        found |= {word(c.args[0]) for c in calls(tree, "setdefault") if "notes" in ast.unparse(c)}
        found |= {word(call.args[2]) for call in calls(tree, "note") if len(call.args) > 2}
        found |= {word(call.args[1]) for call in calls(tree, "Cost") if len(call.args) > 1}
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= {word(node.slice)} if "notes" in ast.unparse(node.value) else set()
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= {word(v) for k, v in pairs if k is not None and word(k) == "code"}
    return {code for code in found if code}


def test_every_code_that_an_agent_writes_has_its_line() -> None:
    assert codes_of_agents() == OF_AGENTS


def test_a_notice_is_made_from_the_table_or_from_the_table_of_causes() -> None:
    """Elsewhere a Notice could be made without an advice. Those of a fleet have it from a table."""
    places = {
        path.relative_to(PACKAGE).as_posix()
        for path, tree in trees(".")
        if any(True for _ in calls(tree, "Notice"))
    }
    assert places == {
        "merge/advice.py", "merge/causes.py", "sources/segments/contents.py",
        "tui/fleet/fleet_notices.py",
    }  # fmt: skip


def test_every_line_has_a_meaning_and_an_advice_that_a_small_screen_has_room_for() -> None:
    for code, meaning, advice in rows():
        assert meaning, code
        assert 0 < len(advice) <= ADVICE_MOST, code
        assert not advice.endswith("."), code
        assert "{" not in advice + meaning, code
    assert {code for code, _, _ in rows()} == CODES
    assert ON_DEVICES <= CODES


def test_every_line_is_tried_here() -> None:
    assert list(MAKERS) == TABLE_CASES


def test_a_host_on_which_nothing_is_wrong_has_no_notice() -> None:
    assert notices(host()) == ()


@pytest.mark.parametrize("case", MAKERS)
def test_what_is_wrong_is_told_with_what_to_do_and_since_when(case: str) -> None:
    code = case.partition(".")[0]
    (notice,) = [n for n in moment(case).warnings if n.code == code]
    cures = {c.cure.format(pid=PID) for c in CASES if c.notice == code}
    expected = TABLE[case].advice if case in TABLE else notice.advice
    assert notice.advice == expected.format(pid=PID, owner="grace", pids="52870")
    assert case in TABLE or notice.advice in cures
    assert notice.since_s
    assert lines(notice)[0].endswith(f"({age(notice)})")
    assert lines(notice)[1] == f"what to do: {notice.advice}"


def test_a_silent_server_names_its_process_and_the_columns_that_are_missing() -> None:
    (notice,) = moment("silent_server").warnings
    text = "libtpu's port 36203 does not answer: DUTY, BW, IDLE, QUEUE are missing"
    assert (notice.message, notice.pid, notice.since_s) == (text, PID, 12.0)
    titles = {column.title for column in DEVICE_COLUMNS}
    assert set(text.split(": ")[1].removesuffix(" are missing").split(", ")) <= titles


def test_natural_ages_are_those_of_what_is_wrong() -> None:
    ages = {case: moment(case).warnings[0].since_s for case in ("silent_agent", "unused")}
    assert ages == {"silent_agent": 70.0, "unused": 400.0}


def test_a_code_of_another_version_gets_an_honest_advice() -> None:
    p = host().processes[0]._replace(warnings=(Notice("from_the_future", "x", PID),))
    assert advised(p).warnings[0].advice == UNKNOWN_CODE


def test_an_agent_has_no_word_in_what_the_kernel_decides() -> None:
    p = host().processes[0]._replace(warnings=(Notice("stale_holder", "x", PID),))
    assert advised(p).warnings[0].advice == UNKNOWN_CODE
