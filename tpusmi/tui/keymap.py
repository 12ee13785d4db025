"""The user's own keys: names as printed on a keyboard, and bindings that have them."""

from __future__ import annotations

import re
import string
from collections.abc import Container, Iterable, Mapping

from textual.binding import Binding
from textual.keys import Keys

from tpusmi.text import clean

NAME_MOST = 20
"""Characters of a wrong name that an error repeats."""

# fmt: off
_PRINTED = {
    "esc": "escape", "pgup": "pageup", "pgdn": "pagedown", "pgdown": "pagedown",
    "return": "enter", "del": "delete", "ins": "insert",
    "s": "shift", "c": "ctrl", "control": "ctrl",
}
_ARROWS = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
_LABELS = {
    **_ARROWS, "escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn", "delete": "Del",
    "insert": "Ins",
}
# fmt: on
_BY_ARROW = {arrow: name for name, arrow in _ARROWS.items()}
_SOME_ARROWS = re.compile(f"[{''.join(_BY_ARROW)}]+")
_MODIFIER = r"(?i)^(ctrl|control|shift|alt|meta|super|hyper|[cs])[-+](?=.)"


class KeyNameError(ValueError):
    """Not the name of a key."""


def remapped(bindings: Iterable[Binding], keys: Mapping[str, str]) -> list[Binding]:
    """The bindings with the user's own keys, by id, as Textual spells them: for footer and help."""
    own_bindings = []
    for b in bindings:
        own = keys.get(b.id or "", b.key)
        own_bindings.append(b if own == b.key else b.with_key(own, key_display=None))
    return own_bindings


def spelled(text: str) -> str:
    """Keys, comma separated, as Textual spells them; each once. Raises KeyNameError."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise KeyNameError("a key has no name; the comma's is comma")
    return ",".join(dict.fromkeys(map(_key, names)))


def printed(key: str) -> str:
    """A key that Textual spells so, as it is printed on a keyboard: `?`, `Esc`, `Ctrl-X`."""
    *modifiers, name = key.split("+")
    label = _LABELS.get(name) or _CHARACTERS.get(name)
    if label is None:
        label = name.title() if len(name) > 1 else name
    if "ctrl" in modifiers:
        label = label.upper() if len(label) == 1 else label
    return "-".join([*(modifier.title() for modifier in modifiers), label])


def in_ascii(printed_keys: str) -> str:
    """Printed keys, with words for arrows: `Left/Right`, `Shift-Left`. A `<` is another key."""
    return _SOME_ARROWS.sub(
        lambda arrows: "/".join(_BY_ARROW[arrow].title() for arrow in arrows[0]), printed_keys
    )


def in_settings(keys: str) -> str:
    """The keys of a binding as the settings file spells them: printed names, with commas."""
    return ", ".join("comma" if key == "comma" else printed(key) for key in keys.split(","))


def clash(
    bindings: Iterable[Binding], keys: Mapping[str, str], ids: Container[str | None] | None = None
) -> tuple[str, str, str] | None:
    """The first key that a remapped binding, with one of those ids, shares with another, and the
    ids of the two.
    """
    keys_of = [(b, split(keys.get(b.id or "", b.key))) for b in bindings]
    for binding, own in keys_of:
        if binding.id not in keys or (ids is not None and binding.id not in ids):
            continue
        for other, taken in keys_of:
            both = [key for key in own if key in taken]
            if both and other is not binding:
                return both[0], binding.id or "", other.id or ""
    return None


def split(keys: str) -> list[str]:
    """The keys of a binding, one by one."""
    return [b.key for b in Binding.make_bindings([Binding(keys, "")])]


_CHARACTERS = {
    "comma": ",",
    **{split(character)[0]: character for character in string.punctuation if character != ","},
}
"""Characters by the names that Textual has for their keys."""
_KEY_NAMES = {
    *(key.value for key in Keys if key.value.isidentifier()),
    "space",
    *_CHARACTERS,
}


def _key(name: str) -> str:
    name = _BY_ARROW.get(name, name)
    if len(name) == 1:
        if not name.isprintable():
            raise KeyNameError("a control character is not the name of a key")
        return split(name)[0]
    modifiers, rest = _modifiers(name)
    key = _named(rest)
    if modifiers == ["shift"] and len(key) == 1:
        return key.upper()  # what terminals send
    if "ctrl" in modifiers and len(key) == 1:
        key = key.lower()
    return "+".join([*sorted({*modifiers}), key])


def _modifiers(name: str) -> tuple[list[str], str]:
    """`Ctrl-Alt-x` is ctrl, alt and x."""
    modifiers: list[str] = []
    while match := re.match(_MODIFIER, name):
        modifier = match[1].lower()
        modifiers.append(_PRINTED.get(modifier, modifier))
        name = name[match.end() :]
    return modifiers, name


def _named(name: str) -> str:
    """One key without modifiers."""
    if len(name) == 1:
        return _key(name) if name != "," else "comma"
    lower = _PRINTED.get(name.lower(), name.lower())
    if lower not in _KEY_NAMES:
        raise KeyNameError(f'no key has the name "{clean(name, NAME_MOST)}"')
    return lower
