"""The page of a profile: fits its width, is its golden, and is not broken by what a trace says."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from rich.cells import cell_len
from support import profiles
from support.clocks import takes_at_most
from support.goldens import same_as_golden
from support.profiles import core, healthy, input_bound, operation, step_times, unknown

from tpusmi.report.profile import comparison, monitor_lines, one_line
from tpusmi.report.profile.capture_words import cost_sentence
from tpusmi.report.profile.profile_text import lines as page_lines
from tpusmi.report.profile.styled import ANSI, Line, as_text, width_of, width_of_line
from tpusmi.trace.figures import Capture, CaptureCost, TimeShares, TraceProfile
from tpusmi.trace.plain_objects import from_object, to_object
from tpusmi.tui.draw.themes import THEMES

GOLDENS = Path(__file__).resolve().parents[1] / "goldens" / "profile"
WIDTHS = (80, 120, 200)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Moments are shown in local time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def plain(lines: list[Line]) -> str:
    return as_text(lines, color=False, ascii_only=False)


def at(p: TraceProfile, host: str) -> TraceProfile:
    return p._replace(capture=p.capture._replace(host=host))


def three() -> list[TraceProfile]:
    return [at(healthy(), "tpu-a-0"), at(input_bound(), "tpu-a-1"), at(healthy(), "tpu-a-2")]


@pytest.mark.golden
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", profiles.ALL)
def test_the_page_is_its_golden(name: str, width: int) -> None:
    lines = page_lines([profiles.ALL[name]()], width, top=10)
    assert max(cell_len("".join(t for t, _ in line)) for line in lines) <= width
    same_as_golden(plain(lines), GOLDENS / f"{name}.{width}.txt")


@pytest.mark.golden
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_several_hosts_is_its_golden(width: int) -> None:
    failures = [("tpu-a-3:9012", "No profiler service answers at tpu-a-3:9012.")]
    lines = page_lines(three(), width, top=5, failures=failures)
    same_as_golden(plain(lines), GOLDENS / f"hosts.{width}.txt")


@pytest.mark.golden
def test_the_page_in_ascii_and_in_color_is_its_golden() -> None:
    lines = page_lines([profiles.v6e_inference()], 80)
    ascii_only = as_text(lines, color=False, ascii_only=True)
    assert ascii_only.isascii()
    same_as_golden(ascii_only, GOLDENS / "v6e_inference.ascii.txt")
    same_as_golden(
        as_text(lines, color=True, ascii_only=False), GOLDENS / "v6e_inference.color.txt"
    )


def test_a_wide_character_takes_as_many_columns_in_ascii() -> None:
    assert as_text([(("漢字–e\u0301", "bold"), ("x", "dim"))], False, True) == "????-ex\n"


@pytest.mark.parametrize("name", profiles.ALL)
def test_every_style_of_a_page_is_one_of_the_dashboards_themes(name: str) -> None:
    lines = page_lines([profiles.ALL[name]()], 120)
    lines += comparison.lines(healthy(), profiles.ALL[name](), 120)
    styles = {style for line in lines for _, style in line}
    assert styles <= ANSI.keys() <= THEMES["ansi"].styles.keys()


def test_a_color_is_never_the_only_sign() -> None:
    """Bad findings, slow cores and slow hosts have a word or a mark."""
    assert " !! Waits for input" in plain(page_lines([input_bound()], 80))
    assert "slower by 22 %" in plain(page_lines([profiles.many_cores()], 80))
    assert "slowest" in plain(page_lines(three(), 80))


def test_unknown_figures_are_dashes_and_never_zeros() -> None:
    text = plain(page_lines([unknown()], 80))
    figures = text.partition("FIGURES")[2].partition("\n\n")[0]
    assert figures.count("–") == 7
    assert "0" not in figures


def test_figures_of_xprof_are_marked() -> None:
    line = next(t for t in plain(page_lines([healthy()], 80)).splitlines() if " MXU " in t)
    assert "49 %  xprof" in line
    assert "xprof" not in plain(page_lines([profiles.cpu_laptop()], 80)).partition("NOTES")[0]


def test_steps_that_the_capture_cut_off_are_named() -> None:
    assert "4 whole · 1 cut off and left out" in plain(page_lines([profiles.v5p_training()], 200))
    none = unknown()._replace(steps=step_times(0.1)._replace(whole=0, cut_off=1), captured_s=0.1)
    assert "– no whole step inside · 1 cut off" in plain(page_lines([none], 80))


def test_a_single_step_has_one_time() -> None:
    text = plain(page_lines([unknown()._replace(steps=step_times(0.1, cut_off=2))], 80))
    assert " Step time      100.0 ms · 1 whole · 2 cut off and left out\n" in text


@pytest.mark.parametrize("width", range(60, 130))
def test_the_source_of_the_steps_is_never_cut_off(width: int) -> None:
    p = healthy()._replace(sources={"steps": "xprof", "flops_per_s": "xprof"})
    lines = plain(page_lines([p], width)).partition("FIGURES")[2].partition("\n\n")[0]
    assert lines.count("  xprof") == 2
    assert "…" not in lines


def test_of_many_cores_only_those_that_differ_have_a_line() -> None:
    text = plain(page_lines([profiles.many_cores()], 80))
    assert len(text.partition("CORES")[2].partition("\n\n")[0].splitlines()) == 4
    well = profiles.many_cores()
    alike = well._replace(cores=tuple(c for c in well.cores if c.id != 128))
    assert "CORES  255; all alike" in plain(page_lines([alike], 80))


def test_a_core_is_named_by_its_global_id_and_the_local_index_beside_it() -> None:
    rows = plain(page_lines([profiles.v6e_inference()], 80)).partition("CORES")[2].splitlines()
    assert rows[1].split()[:2] == ["CORE", "LOCAL"]
    assert rows[2].split()[:2] == ["4", "0"]


def test_the_cost_of_a_capture_is_said_in_steps_per_second() -> None:
    capture = healthy().capture
    assert cost_sentence(capture) == (
        "The capture took 1.34 s and slowed the job from 8.31 to 7.94 steps/s, 8.30 after."
    )
    free = CaptureCost(steps_per_s_before=5.0, steps_per_s_during=5.0, paused_s=0.4)
    assert cost_sentence(capture._replace(cost=free)) == (
        "The capture took 1.34 s and did not slow the job down: 5.00 before, 5.00 during (steps/s),"
        " and paused it for 400 ms."
    )
    unmeasured = cost_sentence(capture._replace(cost=CaptureCost()))  # also with --cost-seconds 0
    assert "no steps of the job were counted" in unmeasured
    long_steps = CaptureCost(steps_per_s_before=0.1)
    assert "too few steps" in cost_sentence(capture._replace(cost=long_steps))
    assert cost_sentence(Capture(how="file", target="a.pb")) == ""


def test_a_simulated_capture_says_so() -> None:
    p = healthy()._replace(capture=healthy().capture._replace(simulated=True))
    for all_ in ([p], [p, healthy()]):
        assert (" SIMULATED ", "loud") in page_lines(all_, 80)[0]


def test_names_are_shortened_in_the_middle() -> None:
    line = next(
        t for t in plain(page_lines([profiles.v5p_training()], 80)).splitlines() if "vmap_s" in t
    )
    assert "…" in line
    assert "el.py:2286" in plain(page_lines([profiles.v5p_training()], 80))


def test_operations_that_take_next_to_nothing_are_counted_and_not_listed() -> None:
    text = plain(page_lines([profiles.v6e_inference()], 80))
    assert "OPERATIONS  8 of 9" in text
    assert " 1 more with less than 0.1 % each\n" in text
    short = unknown()._replace(operations=(operation("add.1", 0.01, 1.0),))
    assert "add.1" in plain(page_lines([short], 80))


def test_only_planes_of_a_tpu_are_called_cores() -> None:
    gpu = healthy()._replace(backend="gpu", device_type="AMD GPU - gfx942")
    text = plain(page_lines([gpu], 80))
    assert "AMD GPU - gfx942 · 4 devices" in text
    assert "\nDEVICES\n DEVICE  BUSY" in text


def test_the_number_of_operations_is_the_one_asked_for() -> None:
    text = plain(page_lines([profiles.v5p_training()], 120, top=3))
    assert "OPERATIONS  3 of 60" in text
    assert text.count("dynamic-update-slice.3") == 6  # three rows, three in the finding
    assert "OPERATIONS\n" not in plain(page_lines([healthy()], 80, top=0))


def test_failed_hosts_are_shown_with_their_sentence_even_when_none_is_left() -> None:
    failures = [("a:1", "It is busy."), ("b:\x1b[2J2", "No server\nanswers.")]
    text = plain(page_lines([], 80, failures=failures))
    assert "2 hosts\n" in text
    assert " !! a:1: It is busy.\n" in text
    assert "\x1b" not in text
    assert "DIFFERENCES" not in text


def test_the_host_that_the_others_wait_for_is_named_when_all_steps_take_as_long() -> None:
    shares = (31.0, 30.0, 12.0)
    hosts = [
        at(healthy(), f"host-{n}")._replace(
            shares=healthy().shares._replace(collectives_percent=share)
        )
        for n, share in enumerate(shares)
    ]
    assert "The others wait for host-2" in plain(page_lines(hosts, 120))
    assert "The hosts are alike." in plain(page_lines([at(healthy(), "a"), at(healthy(), "b")], 80))


def test_hosts_that_do_not_fit_side_by_side_stand_below_each_other_slowest_first() -> None:
    hosts = [at(healthy(), f"tpu-{n}") for n in range(30)] + [at(input_bound(), "tpu-slow")]
    lines = plain(page_lines(hosts, 80)).partition("HOSTS")[2].splitlines()
    assert lines[2].split()[:2] == ["tpu-slow", "slowest"]
    assert sum(line.startswith(" tpu-") for line in lines) == 31


def test_processes_of_one_host_are_not_called_hosts() -> None:
    """JAX may run a job in a process for each chip."""
    both = [at(healthy(), "a"), at(healthy(), "a")]
    both = [
        p._replace(capture=p.capture._replace(pid=pid, target=str(pid)))
        for p, pid in zip(both, (71, 72), strict=True)
    ]
    text = plain(page_lines(both, 80, failures=[("73", "It is busy.")]))
    assert text.startswith("3 processes · 8 cores")
    assert "1 process without a profile" in text
    assert "The processes are alike." in text
    assert "\nPROCESSES\n" in text
    assert "share of the time of each process" in text
    assert "host" not in text.replace("Host copies", "")


def test_two_hosts_of_one_name_are_told_apart() -> None:
    text = plain(page_lines([healthy(), healthy()], 80))
    assert "4711#1" in text
    assert "4711#2" in text


def test_two_profiles_of_different_devices_say_so() -> None:
    text = plain(page_lines([healthy(), profiles.v5p_training()], 120))
    assert "Different device types: TPU v5, TPU v6 Lite" in text
    assert "Different numbers of cores: 4, 8" in text


def test_an_unknown_number_of_cores_is_not_0_beside_other_hosts() -> None:
    """The finished pages of xprof name no cores: neither the sum nor the differences count them."""
    text = plain(page_lines([healthy(), healthy()._replace(cores=())], 120))
    assert text.startswith("2 hosts · TPU v6 Lite")
    assert "numbers of cores" not in text


def test_a_flop_rate_is_not_cut_in_a_narrow_terminal() -> None:
    p = unknown()._replace(
        flops_per_s=4.47e9, peak_flops_per_s=918e12, sources={"flops_per_s": "xprof"}
    )
    lines = plain(page_lines([p], 50)).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(" FLOP rate"))
    assert lines[first].endswith("  4.47 GFLOP/s")
    assert lines[first + 1].endswith("  <0.1 % of 918 TFLOP/s  xprof")


def test_a_stall_that_leaves_no_whole_step_is_still_a_wait_for_input() -> None:
    """The page, the line of a loop and the old command's lines say the same as the finding."""
    p = unknown()._replace(shares=TimeShares(infeed_percent=77.0, idle_percent=1.0))
    text = plain(page_lines([p], 100))
    assert "Waits for input: 77 % of the captured time" in text
    assert re.search(r"Input-bound +77 %", text)
    assert re.search(r"Input +77 % +77 %", plain(page_lines([p, p], 100)))
    assert " 77 % " in one_line.line(p)
    assert "77.0% (avg)" in "".join(monitor_lines.lines(p, 2))
    without = unknown()._replace(shares=TimeShares(infeed_percent=0.0))
    assert re.search(r"Input-bound +–", plain(page_lines([without], 100)))


def test_a_little_time_is_not_no_time() -> None:
    shares = TimeShares(compute_percent=99.97, idle_percent=0.03, infeed_percent=0.0)
    text = plain(page_lines([unknown()._replace(shares=shares)], 120))
    assert "less than 0.1 %: idle; nothing: infeed; unknown: collectives" in text


def test_shares_that_are_all_unknown_or_next_to_nothing_are_not_shown() -> None:
    text = plain(page_lines([unknown()._replace(shares=TimeShares(idle_percent=0.003))], 120))
    assert "WHERE THE TIME WENT" not in text


TEXTS = (profiles.HOSTILE, "", "copy-done", "all-reduce", "HBM", "漢", "\u200b", "{pid}", "tpu")
FLOATS = (0.0, 1.0, -1.0, 99.9, 1e-300, 5e-324, 1e300, -1e300, 0.3)
WHOLE = (0, 1, -1, 7, 2**63 - 1, -(2**63))


def _any_of(hint: Any, random: Random) -> Any:
    """Any value of the type; `from_object` refuses some of the numbers."""
    origin, arguments = get_origin(hint), get_args(hint)
    choices = {float: FLOATS, int: WHOLE, str: TEXTS, bool: (False, True)}
    if hint in choices:
        return random.choice(choices[hint])
    if origin is tuple:
        return tuple(_any_of(arguments[0], random) for _ in range(random.randrange(4)))
    if type(None) in arguments:
        return None if random.random() < 0.3 else _any_of(arguments[0], random)
    if origin is not None:
        return {random.choice(TraceProfile._fields): random.choice(TEXTS) for _ in range(3)}
    hints = get_type_hints(hint).items()
    return hint(**{name: _any_of(inner, random) for name, inner in hints})


@pytest.mark.parametrize("seed", range(60))
def test_no_profile_breaks_a_page(seed: int) -> None:
    random = Random(seed)
    all_ = [_any_of(TraceProfile, random) for _ in range(1 + seed % 3)]
    width = random.choice((1, 20, 79, 80, 120, 211))
    pages = [
        page_lines(all_, width),
        page_lines(all_[:1], width, failures=[("a", profiles.HOSTILE)]),
        comparison.lines(all_[0], all_[-1], width),
    ]
    for line in chain.from_iterable(pages):
        assert width_of_line(line) <= max(width, 20)
        assert all(text.isprintable() for text, _ in line)
    for p in all_:
        try:
            assert from_object(to_object(p)) == p
        except ValueError as error:
            assert re.search("is not a (finite number|percentage)$", str(error))  # noqa: PT017
        texts = [*monitor_lines.lines(p, 2), one_line.line(p), one_line.line(p, with_host=True)]
        assert all(text.isprintable() for text in texts)


def test_a_page_of_a_large_profile_is_quick() -> None:
    p = profiles.v5p_training()
    many = p._replace(
        operations=p.operations * 1000, cores=tuple(core(n, 0.9) for n in range(4096))
    )
    with takes_at_most(2.0):
        page_lines([many], 120)


def test_the_widths_are_those_of_the_dashboard() -> None:
    for text in ("abc", "漢字", "e\u0301", "–…·", "a漢"):
        assert width_of(text) == cell_len(text)
