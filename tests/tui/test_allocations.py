"""The tree of what a memory profile holds."""

from __future__ import annotations

import pytest
from support.memory_feeds import HERE, MIB, held, profile, sums

from tpusmi.model import Allocation, MemoryProfile
from tpusmi.tui.memory.allocations import (
    BYTES,
    CHANGE,
    CHANGE_COUNT,
    COUNT,
    EXECUTABLE,
    Amount,
    Node,
    Tree,
    TreeQuery,
    Trees,
    at_line,
    is_by_device,
    tree,
)

LEAK = ("log_metrics", "train/metrics.py", 27, 940, 30)


def names(found: Tree) -> list[str]:
    return [n.function for n in found.nodes]


def node(found: Tree, function: str) -> Node:
    return next(n for n in found.nodes if n.function == function)


def test_functions_come_largest_first_and_programs_last() -> None:
    found = tree(TreeQuery(profile(1.0, held(4))))
    assert names(found) == ["init_optimizer", "init_params", "train_step", "load_batch", ""]
    assert found.nodes[-1].kind == EXECUTABLE


def test_a_function_of_one_line_opens_to_its_buffers_on_each_device() -> None:
    found = node(tree(TreeQuery(profile(1.0, held(2)))), "init_optimizer")
    assert [(n.device, n.held) for n in found.children] == [
        (0, Amount(5581 * MIB, 504)),
        (1, Amount(5581 * MIB, 504)),
    ]
    assert found.held == Amount(2 * 5581 * MIB, 1008)
    assert at_line(found) == "train/optimizer.py:48"


def test_a_function_of_several_lines_opens_to_them() -> None:
    found = node(tree(TreeQuery(profile(1.0, held(2)))), "train_step")
    assert [(n.line, n.held.count) for n in found.children] == [(131, 80), (188, 16)]
    assert [n.device for n in found.children[0].children] == [0, 1]
    assert at_line(found) == "train/loop.py:131"


def test_functions_of_the_same_name_in_two_files_are_two() -> None:
    two = [Allocation("init", f, 1, "buffer", 0, MIB, 1) for f in ("a.py", "b.py")]
    found = tree(TreeQuery(profile(1.0, tuple(two))))
    assert [n.file for n in found.nodes] == ["a.py", "b.py"]


def test_a_program_of_unknown_size_is_never_zero_bytes() -> None:
    group = tree(TreeQuery(profile(1.0, held(2)))).nodes[-1]
    assert group.held == Amount(None, 4)
    assert [(n.function, n.held) for n in group.children] == [
        ("train_step", Amount(None, 3)),
        ("eval_step", Amount(None, 1)),
    ]


def test_programs_are_no_part_of_the_live_arrays() -> None:
    some = (Allocation("f", "a.py", 1, "executable", None, 5 * MIB, 1),)
    found = tree(TreeQuery(profile(1.0, held(2) + some)))
    each = sum(size for *_, size, _ in HERE)
    assert found.live == Amount(2 * each * MIB, 2 * sum(count for *_, count in HERE))


def test_one_device_has_its_own_sums_and_all_of_the_programs() -> None:
    found = tree(TreeQuery(profile(1.0, held(4)), device=3))
    assert node(found, "init_params").held == Amount(3558 * MIB, 292)
    assert found.nodes[-1].held == Amount(None, 4)
    assert found.live.bytes == sum(size for *_, size, _ in HERE) * MIB


def test_a_profile_without_devices_is_a_tree_of_sums() -> None:
    plain = MemoryProfile(1.0, sums(held(4)))
    assert not is_by_device(plain)
    found = tree(TreeQuery(plain))
    assert names(found) == names(tree(TreeQuery(profile(1.0, held(4)))))
    assert [n.device for n in found.nodes[0].children] == [None]


def test_what_is_left_out_counts_as_live_and_is_told() -> None:
    cut = profile(1.0, held(1), allocations_left_out_bytes=7 * MIB, allocations_left_out_count=300)
    found, whole = tree(TreeQuery(cut)), tree(TreeQuery(profile(1.0, held(1))))
    assert found.left_out == Amount(7 * MIB, 300)
    assert found.live == Amount((whole.live.bytes or 0) + 7 * MIB, whole.live.count + 300)


def test_nobody_knows_what_a_list_of_sites_leaves_out() -> None:
    assert tree(TreeQuery(MemoryProfile(1.0, sums(held(1))))).left_out is None


def test_without_a_mark_there_is_no_change() -> None:
    found = tree(TreeQuery(profile(1.0, held(2)))).nodes[0]
    assert (found.change_bytes, found.change_count) == (None, None)
    assert not found.is_new
    assert not found.is_gone


def test_the_change_since_the_mark_is_told_of_every_row() -> None:
    then = profile(1.0, held(2))
    now = profile(9.0, tuple(a._replace(count=a.count + (a.line == 77)) for a in held(2, LEAK)))
    found = tree(TreeQuery(now, then))
    leak, batch = node(found, "log_metrics"), node(found, "load_batch")
    assert (leak.is_new, leak.change_bytes, leak.change_count) == (True, 2 * 940 * MIB, 60)
    assert (batch.is_new, batch.change_bytes, batch.change_count) == (False, 0, 2)
    assert (found.new, found.gone, found.is_sure) == (1, 0, True)
    assert (found.live.bytes or 0) - (found.live_before or Amount(0, 0)).bytes == 2 * 940 * MIB  # type: ignore[operator]


def test_what_has_gone_since_the_mark_stays_in_the_tree() -> None:
    found = tree(TreeQuery(profile(9.0, held(2)), profile(1.0, held(2, LEAK))))
    leak = node(found, "log_metrics")
    assert (leak.is_gone, leak.held, leak.change_bytes) == (True, Amount(0, 0), -2 * 940 * MIB)
    assert (found.new, found.gone) == (0, 1)


def test_a_line_that_goes_is_counted_though_its_function_stays() -> None:
    now = tuple(a for a in held(2) if a.line != 188)
    assert tree(TreeQuery(profile(9.0, now), profile(1.0, held(2)))).gone == 1


def test_the_change_of_programs_is_in_their_number_alone() -> None:
    more = tuple(a._replace(count=a.count + 5) if a.bytes is None else a for a in held(1))
    group = tree(TreeQuery(profile(9.0, more), profile(1.0, held(1)))).nodes[-1]
    assert (group.change_bytes, group.change_count) == (None, 10)


def test_what_a_cut_list_did_not_have_is_not_surely_new() -> None:
    cut = profile(1.0, held(2), allocations_left_out_bytes=MIB, allocations_left_out_count=9)
    assert not tree(TreeQuery(profile(9.0, held(2, LEAK)), cut)).is_sure
    sites = MemoryProfile(1.0, sums(held(2)))
    assert not tree(TreeQuery(profile(9.0, held(2, LEAK)), sites)).is_sure


@pytest.mark.parametrize(
    ("order", "first"),
    [
        (BYTES, ["init_optimizer", "init_params"]),
        (COUNT, ["init_optimizer", "init_params"]),
        (CHANGE, ["log_metrics", "load_batch"]),
        (CHANGE_COUNT, ["load_batch", "log_metrics"]),
    ],
)
def test_the_most_comes_first_whatever_it_is_sorted_by(order: str, first: list[str]) -> None:
    grown = (
        a._replace(bytes=a.bytes + 8 * MIB, count=a.count + 99) if a.line == 77 and a.bytes else a
        for a in held(2, LEAK)
    )
    found = tree(TreeQuery(profile(9.0, tuple(grown)), profile(1.0, held(2)), order=order))
    assert names(found)[:2] == first
    assert found.nodes[-1].kind == EXECUTABLE


def test_sorted_by_change_what_shrank_comes_after_what_stayed() -> None:
    now = tuple(a._replace(count=1, bytes=MIB) if a.line == 48 else a for a in held(1))
    found = tree(TreeQuery(profile(9.0, now), profile(1.0, held(1)), order=CHANGE))
    assert [n.function for n in found.nodes][-2] == "init_optimizer"


def test_rows_that_read_the_same_do_not_change_places() -> None:
    def two(a: int, b: int) -> list[str]:
        sizes = (("first", a), ("second", b))
        found = tuple(Allocation(f, "a.py", 1, "buffer", 0, size, 1) for f, size in sizes)
        return names(tree(TreeQuery(profile(1.0, found))))

    gib = 1 << 30
    assert two(5 * gib, 5 * gib + 900) == two(5 * gib + 900, 5 * gib) == ["first", "second"]
    assert two(5 * gib, 6 * gib) == ["second", "first"]


def test_a_filter_is_found_in_function_file_and_line_whatever_the_case() -> None:
    whole = profile(1.0, held(2))
    assert names(tree(TreeQuery(whole, filter="OPTIM"))) == ["init_optimizer"]
    assert names(tree(TreeQuery(whole, filter="loop.py:188"))) == ["train_step", ""]
    assert tree(TreeQuery(whole, filter="nowhere")).nodes == ()
    assert tree(TreeQuery(whole, filter="nowhere")).live == tree(TreeQuery(whole)).live


def test_a_tree_is_built_once_for_a_profile_and_again_for_what_is_wanted_of_it() -> None:
    trees, one = Trees(), profile(1.0, held(2))
    assert trees.of(TreeQuery(one)) is trees.of(TreeQuery(one))
    assert trees.built == 1
    same = profile(1.0, held(2))
    for wanted in (
        TreeQuery(same),
        TreeQuery(same, same),
        TreeQuery(same, same, 1),
        TreeQuery(same, same, 1, "x"),
        TreeQuery(same, same, 1, "x", CHANGE),
    ):
        trees.of(wanted)
        trees.of(wanted)
    assert trees.built == 6


def test_an_empty_profile_is_an_empty_tree() -> None:
    empty = MemoryProfile(1.0, ())
    assert tree(TreeQuery(empty, empty)).nodes == ()


def test_the_same_line_told_twice_is_summed() -> None:
    twice = (Allocation("f", "a.py", 1, "buffer", 0, MIB, 1),) * 2
    assert tree(TreeQuery(profile(1.0, twice))).nodes[0].held == Amount(2 * MIB, 2)


def test_what_is_left_out_is_of_no_device() -> None:
    cut = profile(1.0, held(2), allocations_left_out_bytes=MIB, allocations_left_out_count=9)
    alone = tree(TreeQuery(profile(1.0, held(2)), device=1))
    assert tree(TreeQuery(cut, device=1)).live == alone.live
