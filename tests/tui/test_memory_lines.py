"""What the lines over the memory tree say, and the cells in it."""

from __future__ import annotations

import pytest
from support.feeds import LIMIT, ScriptedFeed
from support.memory_feeds import MemoryJob, held, profile, trainer

from tpusmi.model import NOMINAL, MemoryProfile, Snapshot, Value
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.memory.allocations import TreeQuery, tree
from tpusmi.tui.memory.memory_bars import cards, figures, split_bar
from tpusmi.tui.memory.memory_head import ShownMemory, head_lines
from tpusmi.tui.memory.memory_tree import MemoryTable, TreeRow, nearest, signed_size, tree_rows

GIB = 1 << 30
LOOK = Look()


def moment(feed: ScriptedFeed | None = None, **values: float | None) -> Snapshot:
    """A snapshot of a job on one device, with these values of it in place of the script's."""
    s = (feed or ScriptedFeed((MemoryJob(41234, 0, 1),))).snapshot()
    key = s.devices[0].key
    changed = dict(s.values)
    for name, value in values.items():
        changed.pop((key, name), None)
        if value is not None:
            changed[key, name] = Value(value, "agent", 0.4, False)
    return s._replace(values=changed)


def said(s: Snapshot, mark: MemoryProfile | None = None, width: int = 120, lines: int = 6) -> str:
    return "\n".join(map(plain, head_lines(LOOK, about(s, mark), width, lines)))


def about(
    s: Snapshot, mark: MemoryProfile | None = None, now_s: float | None = None
) -> ShownMemory:
    p = s.processes[0]
    assert p.profile is not None
    found = tree(TreeQuery(p.profile, mark))
    at_s = None if mark is None else mark.at_s
    return ShownMemory(
        s, p, s.devices_of(p.key), False, found, at_s, now_s or s.at_s, "job 1 of 2, Tab: next"
    )


def plain(row: Row) -> str:
    return "".join(piece.text for piece in row).rstrip()


def test_what_is_in_use_and_in_no_array_is_unattributed() -> None:
    text = said(moment(hbm_used_bytes=10 * GIB, live_array_bytes=7 * GIB))
    assert "10.0/15.8 GiB   63 %  tpu:0" in text
    assert "live ━  7.0 GiB in 880 arrays · profile, 4s old" in text
    assert "other ╍ 3.0 GiB unattributed: programs, runtime, temporaries, fragmentation" in text


def test_arrays_that_are_more_than_what_is_in_use_were_counted_before() -> None:
    text = said(moment(hbm_used_bytes=5 * GIB, live_array_bytes=7 * GIB))
    assert "other ╍ – the live arrays are older than the memory in use" in text


@pytest.mark.parametrize("name", ["hbm_used_bytes", "live_array_bytes"])
def test_what_nobody_measured_makes_the_rest_unknown(name: str) -> None:
    assert "other ╍ – unattributed" in said(moment(**{name: None}))


def test_fragmentation_is_what_the_largest_free_block_lacks_of_all_that_is_free() -> None:
    s = moment(hbm_used_bytes=LIMIT - 4 * GIB, hbm_largest_free_block_bytes=3 * GIB)
    assert "free ─  4.0 GiB · largest 3.0 GiB · 25 % fragmented · 258.0 MiB reserved" in said(s)


def test_of_several_devices_the_one_with_the_smallest_block_is_named() -> None:
    assert "largest 1.3 GiB on tpu:0" in said(trainer().snapshot())


def test_an_unknown_block_and_a_full_device_have_no_fragmentation() -> None:
    assert "largest –" in said(moment(hbm_largest_free_block_bytes=None))
    assert "fragmented" not in said(moment(hbm_largest_free_block_bytes=None))
    assert "0 B · largest 0 B · – fragmented" in said(
        moment(hbm_used_bytes=LIMIT, hbm_largest_free_block_bytes=0)
    )


def test_a_sum_is_unknown_when_one_device_is() -> None:
    s = trainer().snapshot()
    devices = s.devices_of(s.processes[0].key)
    values = {k: v for k, v in s.values.items() if k != (devices[2].key, "hbm_used_bytes")}
    found = figures(s._replace(values=values), devices)
    assert found.used is None
    assert found.limit is not None
    assert found.limit.value == 4 * LIMIT


def test_a_nominal_limit_is_said_to_be_one() -> None:
    s = moment(hbm_used_bytes=10 * GIB)
    values = {**s.values, (s.devices[0].key, "hbm_limit_bytes"): Value(LIMIT, NOMINAL, 0, False)}
    assert "10.0/~15.8 GiB" in said(s._replace(values=values))


def test_an_old_value_has_its_age_in_place_of_the_bar() -> None:
    s = moment()
    old = Value(10 * GIB, "agent", 75.0, True)
    found = figures(
        s._replace(values={**s.values, (s.devices[0].key, "hbm_used_bytes"): old}), s.devices
    )
    assert plain(split_bar(LOOK, found, 20)) == "1m15s old"


@pytest.mark.parametrize(
    ("used", "live", "drawn"),
    [
        (0.5, 0.25, "━━━╍╍─────"),
        (1.0, 0.5, "━━━━━╍╍╍╍╍"),
        (0.5, 0.5, "━━━━━─────"),
        (0.3, 0.9, "━━━───────"),
        (1.4, 0.2, "━━╍╍╍╍╍╍╍╍"),
        (0.0, 0.0, "──────────"),
        (0.5, None, "━━━━━─────"),
    ],
)
def test_the_bar_has_live_arrays_then_the_rest_then_what_is_free(
    used: float, live: float | None, drawn: str
) -> None:
    arrays = None if live is None else live * LIMIT + 2**20
    s = moment(hbm_used_bytes=used * LIMIT, live_array_bytes=arrays)
    assert plain(split_bar(LOOK, figures(s, s.devices), 10)) == drawn


def test_many_devices_have_no_bars_of_their_own_and_few_have() -> None:
    def lines(count: int, width: int) -> list[str]:
        s = ScriptedFeed((MemoryJob(41234, 0, count),)).snapshot()
        return [plain(row) for row in cards(LOOK, s, s.devices, width)]

    assert lines(256, 200) == lines(1, 200) == []
    assert [line.count("tpu:") for line in lines(8, 120)] == [3, 3, 2]


def test_few_lines_have_the_mark_among_them_once_there_is_one() -> None:
    s = moment()
    assert said(s, lines=3).splitlines()[-1].startswith("live")
    assert said(s, profile(99_990.0, held(1)), lines=3).splitlines()[-1].startswith("mark")


def test_a_part_that_has_no_room_is_left_out_whole() -> None:
    for width in range(20, 130):
        line = next(x for x in said(moment(), width=width).splitlines() if x.startswith("free"))
        assert line.endswith(("GiB", "fragmented", "reserved"))
    assert "reserved" in said(trainer().snapshot(), width=80)


def test_what_the_profile_does_not_list_is_told() -> None:
    job = MemoryJob(41234, 0, 1)
    job.take(
        profile(99_996.0, held(1), allocations_left_out_bytes=GIB, allocations_left_out_count=431)
    )
    assert "1.0 GiB in 431 not listed" in said(moment(ScriptedFeed((job,))))


def test_what_may_have_been_too_small_at_the_mark_is_said_to_be() -> None:
    cut = profile(
        99_000.0, held(1)[3:], allocations_left_out_bytes=GIB, allocations_left_out_count=9
    )
    s = moment()
    assert '"new?": may have been too small to list at the mark' in said(s, cut)
    assert "new?" in cells(s, cut)


def test_a_job_that_has_ended_is_grey() -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 1, state="dead"),))
    lines = head_lines(LOOK, about(feed.snapshot()), 100, 6)
    assert all(LOOK.style["dim"] in {piece.style for piece in line} for line in lines[2:])


def test_every_cell_of_the_table_has_the_width_it_is_given() -> None:
    s, mark = moment(), profile(99_000.0, held(1, ("gone_" * 9, "a/" * 40 + "b.py", 1, 9, 9)))
    for look in (LOOK, Look(ascii=True)):
        for branch in opened(s, mark):
            for column in table(look, s).columns():
                for width in (column.width, column.width + 1, 60):
                    assert width_of(column.draw(branch, width)) == width, column.title


def test_wide_characters_stay_in_their_cell() -> None:
    job = MemoryJob(41234, 0, 1)
    name = "勾配を計算する" * 3
    job.take(profile(99_996.0, held(1, (name, "学習/" * 9 + "主.py", 5, 9999, 3))))
    s = moment(ScriptedFeed((job,)))
    where = table(LOOK, s).columns()[-1]
    for branch in opened(s):
        assert width_of(where.draw(branch, 40)) == 40


def test_a_folded_row_is_found_by_what_it_is_in() -> None:
    assert nearest(("a", "b", 3), {("a", "b"), ("a",)}) == ("a", "b")
    assert nearest(("a", "b", 3), {("b",)}) is None


@pytest.mark.parametrize(
    ("change", "shown"),
    [(None, "–"), (0, "0 B"), (3 * GIB, "+3.0 GiB"), (-5 << 20, "-5.0 MiB")],
)
def test_a_change_has_its_sign(change: int | None, shown: str) -> None:
    assert signed_size(change) == shown


def opened(s: Snapshot, mark: MemoryProfile | None = None) -> list[TreeRow]:
    return [*tree_rows(about(s, mark).tree.nodes, lambda key: True)]


def table(look: Look, s: Snapshot, mark: MemoryProfile | None = None) -> MemoryTable:
    found, made = about(s, mark).tree, MemoryTable(look)
    made.live_bytes, made.is_sure = found.live.bytes, found.is_sure
    return made


def cells(s: Snapshot, mark: MemoryProfile) -> str:
    where = table(LOOK, s, mark).columns()[-1]
    return "\n".join(plain(where.draw(branch, 60)) for branch in opened(s, mark))


def test_what_a_silent_agent_told_last_is_grey() -> None:
    s = moment()
    key = (s.devices[0].key, "hbm_used_bytes")
    old = s._replace(values={**s.values, key: s.values[key]._replace(stale=True, age_s=75.0)})
    gray = LOOK.style["dim"]
    assert head_lines(LOOK, about(old), 100, 6)[2][-1].style == gray
    assert head_lines(LOOK, about(s), 100, 6)[2][-1].style != gray


def test_a_line_is_called_new_and_not_once_more_each_of_its_buffers() -> None:
    job = MemoryJob(41234, 0, 1)
    job.take(profile(99_996.0, held(1, ("leak", "a.py", 1, 9, 9))))
    text = cells(moment(ScriptedFeed((job,))), profile(99_000.0, held(1)))
    assert text.count("new ") == 1
