"""A person's own keys, in the bindings and on the dashboard."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, shown, text
from support.feeds import two_jobs
from support.fleets import fleet_dashboard

from tpusmi.settings import checked
from tpusmi.tui.ending.kill_screen import KillScreen
from tpusmi.tui.keymap import KeyNameError, clash, in_ascii, in_settings, remapped, spelled
from tpusmi.tui.keys import footer, key_names, shown_key
from tpusmi.tui.pages import every_key, keys_by_fleet_page


@pytest.mark.parametrize(
    ("printed", "textual"),
    [
        ("←,Left", "left"),
        ("Shift-→", "shift+right"),
        ("k, F9", "k,f9"),
        ("?", "question_mark"),
        ("K", "K"),
        ("Shift-k", "K"),
        ("Esc,PgUp,PgDn,Del,Return", "escape,pageup,pagedown,delete,enter"),
        ("Ctrl-X", "ctrl+x"),
        ("ctrl++", "ctrl+plus"),
        ("Alt-Ctrl-Delete", "alt+ctrl+delete"),
        ("S-Tab", "shift+tab"),
        ("+,-,_,/", "plus,minus,underscore,slash"),
        ("ö", "ö"),
        ("Space,comma", "space,comma"),
        ("x,x", "x"),
        ("?,question_mark", "question_mark"),
    ],
)
def test_keys_are_spelled_as_printed_or_as_textual_does(printed: str, textual: str) -> None:
    assert spelled(printed) == textual
    assert spelled(textual) == textual


@pytest.mark.parametrize(
    "wrong", ["", ",", "x,", "bogus", "Ctrl-", "\x1b", "<any>", "F99", "\u200b"]
)
def test_what_is_no_key_is_refused(wrong: str) -> None:
    with pytest.raises(KeyNameError):
        spelled(wrong)


@pytest.mark.parametrize(
    ("textual", "printed"),
    [
        ("question_mark,h,f1", "?, h, F1"),
        ("full_stop,greater_than_sign", "., >"),
        ("comma,less_than_sign", "comma, <"),
        ("escape", "Esc"),
        ("pageup,shift+left", "PgUp, Shift-←"),
        ("ctrl+c,ctrl+plus,alt+a,K", "Ctrl-C, Ctrl-+, Alt-a, K"),
    ],
)
def test_keys_are_printed_as_on_a_keyboard_and_read_back(textual: str, printed: str) -> None:
    assert in_settings(textual) == printed
    assert spelled(printed) == textual


def test_every_binding_reads_back_as_it_is_printed() -> None:
    for binding in every_key():
        assert spelled(in_settings(binding.key)) == binding.key


def test_every_binding_is_spelled_as_textual_does() -> None:
    for binding in every_key():
        assert spelled(binding.key) == binding.key


def test_footer_and_help_show_the_keys_that_a_person_chose() -> None:
    found = {b.id: b for b in remapped(every_key(), {"kill": "z,f8", "quit": "q,f10"})}
    assert key_names(found["kill"]) == ["z", "F8"]
    assert shown_key(found["kill"]) == "z"
    assert shown_key(found["quit"]) == "q"
    assert [b for b in found.values() if b not in every_key()] == [found["kill"]]


def test_a_key_of_two_bindings_is_found_unless_the_other_one_has_moved() -> None:
    assert clash(every_key(), {"kill": "q"}) == ("q", "kill", "quit")
    assert clash(every_key(), {"kill": "q", "quit": "z"}) is None
    assert clash(every_key(), {}) is None


def test_no_key_of_the_dialog_moves_with_one_of_the_dashboard() -> None:
    dialog = {getattr(b, "id", None) for b in KillScreen.BINDINGS}
    assert not dialog & {b.id for b in every_key()}


async def test_the_dashboard_answers_to_the_chosen_keys_and_no_more_to_the_usual_ones() -> None:
    async with dashboard(two_jobs()) as pilot:
        pilot.app.set_keymap({"pause": "q,f8", "quit": "f10", "sort": "x"})
        await press(pilot, "p")
        assert "PAUSED" not in shown(pilot)
        await press(pilot, "q")
        assert "PAUSED" in shown(pilot)
        await press(pilot, "f8")
        assert "PAUSED" not in shown(pilot)
        before = text(pilot, "processes").splitlines()[0]
        await press(pilot, "x", "comma")  # one column on, and back
        assert text(pilot, "processes").splitlines()[0] == before
        await press(pilot, "f10")
    assert pilot.app.return_code == 0


def test_keys_of_a_fleet_can_be_remapped_and_do_not_clash() -> None:
    pages = keys_by_fleet_page()
    for name, bindings in pages.items():
        assert len({b.id for b in bindings}) == len(bindings), name
        assert clash(bindings, {b.id: b.key for b in bindings if b.id}) is None, name
    defaults = {b.id: b.key for b in every_key()}
    for b in (b for bindings in pages.values() for b in bindings):
        assert b.id
        assert defaults.get(b.id, b.key) == b.key, b.id


def test_the_settings_file_takes_keys_of_a_fleet() -> None:
    assert checked("keys", {"group": "F7"}) == {"group": "f7"}
    with pytest.raises(ValueError, match="T is already the key of topology"):
        checked("keys", {"group": "T"})


async def test_a_remapped_key_of_a_fleet_works_and_is_in_the_footer() -> None:
    async with fleet_dashboard(keys={"group": "f7"}) as pilot:
        assert "F7 Group" in text(pilot, "footer")
        await press(pilot, "G")
        assert "by job" in text(pilot, "header")
        await press(pilot, "f7")
        assert "by slice" in text(pilot, "header")


def test_arrows_are_words_where_only_ascii_is_printed() -> None:
    assert in_ascii("←→") == "Left/Right"
    assert in_ascii("Shift-↑ < >") == "Shift-Up < >"
    earlier = next(b for b in every_key() if b.id == "earlier")
    assert footer([earlier], 80)[0][0] == "←→"
    assert footer([earlier], 80, only_ascii=True)[0][0] == "Left/Right"


async def test_help_and_palette_without_unicode_have_words_for_arrows() -> None:
    async with fleet_dashboard(ascii=True) as pilot:
        await press(pilot, "?")
        assert "Shift-Left" in shown(pilot)
        await press(pilot, "escape", ":", *"earlier")
        assert "Shift-Left" in shown(pilot)
