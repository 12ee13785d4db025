"""Words that a reader stumbles on stand nowhere in the program, its comments or its documents.

Each pattern has a plainer way to say it, which the failure prints with file and line. Identifiers
are code and are not looked at.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tpusmi"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

_END = r"(?=[.,;:!?)|]|$)"
"""The end of a clause."""

_THERE = "".join(f"(?<!there {verb})" for verb in ("", "may ", "can ", "will ", "has ", "have "))
"""Not after "there": "there is no X" and "there may be no X" are plain."""

# Patterns run over text with single spaces, in small and capital letters alike.
WORDS: dict[str, str] = {
    # "is no X"
    _THERE + r"\b(?:is|are|was|were|be|been) no (?!longer\b|(?:more|less|\w+er) than\b)\w+":
        '"is not a ...", "is not ..." or "has no ..."',
    _THERE + r"\b(?:is|are|was|were) (?-i:none)\b(?! of (?:the|its|these|those|them)\b)":
        '"is not one", "is not a ..."; or "must be one of ..."',
    # processes and sources are not people
    r"(?<!`)\b(?:nobody|somebody|everybody|anybody)\b(?!`)":
        'name it: "no process", "no source", "another user", "each process"',
    r"\b(?:whoever|whosoever)\b": '"a process that ...", "the user who ..."',
    r"\bnothing (?:tells|told|says|said|speaks|spoke)\b": '"no source reports", "there is no sign"',
    r"\b(?:speaks?|spoke|spoken) (?:for|against)\b": '"is evidence for", "is a sign that"',
    # time
    r"(?<!as )\bof (?:then|now)\b": '"the current ...", "... at that time"',
    r"\bby now\b": '"now", "since then", "already"',
    r"\b(?:any|no) more(?=[.,;:!?)|]|$| (?:as|when|if|and|because|since|after|once|in|on|at|by)\b)":
        '"no longer", "not ... anymore"',
    r"\bso long\b(?! that\b)": '"this long", "for that time", "as long as", or name the duration',
    r"(?<!back )\band forth\b": '"forward", "back and forth"',
    r"\banew\b": '"again"',
    r"\blives? on" + _END[:-1] + r"| and\b| after\b| without\b)": '"keeps running"',
    # pronouns in place of a noun
    r"\b(?-i:Those|Ones?) (?:that|which|who|whose)\b": "name what they are: \"Processes that ...\"",
    r"\bThose are \w+ (?:that|which|who)\b": '"Ends the holders that ..."',
    r"\bsuch an? one\b": '"one like that", or name it',
    r"\bwhat is (?:no|not|none|known|unknown|selected|wanted|said|told|asked|seen|meant|chosen"
    r"|given|measured|open|printed|worth|there|more|otherwise|older|newer|larger|smaller|live)\b":
        'a noun: "the selected item", "unknown values"',
    r"\bwhat it does not have\b": 'a noun: "metrics that it rejects"',
    r"\bWhat takes\b": 'a noun: "Values that take ..."',
    r"\ba file of them\b": '"as a TOML file"',
    # fragments that mean nothing away from their line
    r"^(?-i:Of|And) \w+": "start with the noun",
    r"^(?-i:That) (?:is|are|was|were|has|have|can)\b": "start with the noun",
    # told, said, asked
    r"\b(?:is|are|was|were|be|been|as|nobody) (?:told|said)\b(?! (?:apart|to)\b)":
        '"reports", "is reported", "shows", "prints"',
    r"\b(?:has|have|had|server|agent|kernel) told\b(?! apart\b)": '"reports", "has reported"',
    r"\b(?:tells?|told) of\b": '"reports"',
    r"\bunasked\b": '"without being asked to"; or say what to specify',
    r"\b(?:is|are|was|were) (?:\w+ )?meant\b(?! (?:to|for|as|by)\b)":
        '"did you mean", "is selected"',
    # word for word from another language
    r", too" + _END: '"also"',
    r"\bas (?:it|they) (?:was|were)" + _END: '"unchanged", "cancel"',
    r"\bstands? (?:in(?! for\b)|on|at|below|above|beside|under|there|with)\b|\bIt stands\b":
        '"is", "appears", "is shown"',
    r"\bby being there\b": '"the existence of ..."',
    r"\bin peace\b": '"is not killed"',
    r"\bis called that\b": '"no matching ..."',
    r"\bshows? itself\b": '"is reporting", "is visible"',
    r"\bis that you see\b": 'name it: "how far back the view is"',
    r"\b(?:has|have|had) run nothing on\b": '"has been idle"',
    r"\bcolumn before\b": '"previous column"',
    r"\blook less\b": '"refresh slower"',
    r"\bsmall then\b": '"too small at the time"',
    r"\bby \S+ \S+ under\b": '"started by ..., session of ..."',
    r"\baccepts and does not answer\b": '"accepts connections but does not respond"',
    r"\bis sane\b": '"too large", "invalid"',
    r"\bwould stop the job for\b": '"would pause the job for"',
    r"\bfor no holder\b": '"as not holding the TPU"',
    r"\btime of grace\b": '"grace period"',
    r"\bSIGKILL follows\b": '"seconds before SIGKILL"',
    r"^(?:of what|how it looks|how often)$": '"filters", "appearance", "timing"',
    r"\b(?:thereof|thereto|therein|thereupon|whereof|wherein|whereupon|hitherto|heretofore)\b":
        "a short modern word",
}  # fmt: skip
PATTERNS = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in WORDS.items()]


class Prose(NamedTuple):
    """A text that a person may read."""

    line: int
    """The line of the file where it begins."""

    text: str


def _strings(tree: ast.Module) -> Iterator[Prose]:
    """String constants and docstrings; each value inside an f-string is `X`."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            pieces = [str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values]
            yield Prose(node.lineno, "".join(pieces))
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            yield Prose(node.lineno, node.value)


def _comments(source: str) -> Iterator[Prose]:
    """Comments; one that goes over several lines is one text."""
    block: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != first + len(block):
            yield Prose(first, "\n".join(block))
            block = []
        if not block:
            first = token.start[0]
        block.append(token.string.lstrip("# "))
    if block:
        yield Prose(first, "\n".join(block))


def _module(path: Path) -> Iterator[Prose]:
    source = path.read_text(encoding="utf-8")
    yield from _strings(ast.parse(source))
    yield from _comments(source)


def _document(path: Path) -> Iterator[Prose]:
    """The paragraphs of a document, sample output included."""
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"(?:.+\n?)+", text):
        yield Prose(text.count("\n", 0, match.start()) + 1, match.group())


def _stumbles(prose: Prose) -> Iterator[tuple[int, str]]:
    """The line of each phrase to change, and what to write."""
    words = list(re.finditer(r"\S+", prose.text))
    if len(words) < 2:  # a name, a key
        return
    text = " ".join(word.group() for word in words)
    for pattern, plain in PATTERNS:
        for match in pattern.finditer(text):
            word = words[text.count(" ", 0, match.start())]
            line = prose.line + prose.text.count("\n", 0, word.start())
            yield line, f'"{match.group()}": write {plain}'


def _package(path: Path) -> str:
    """The name under which a module of tpusmi/ is checked: `tui`, `sources.segments`, `text`."""
    first, *rest = path.relative_to(PACKAGE).with_suffix("").parts
    if first != "sources":
        return first
    parts = ("segments", "holders", "libtpu", "sysfs")
    return f"sources.{rest[0] if rest[0] in parts else 'rest'}"


def _packages() -> dict[str, list[Path]]:
    packages: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        packages.setdefault(_package(path), []).append(path)
    return packages


def _check(prose: dict[Path, Iterator[Prose]]) -> None:
    problems = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path, texts in prose.items()
        for line, what in sorted(problem for text in texts for problem in _stumbles(text))
    ]
    if problems:
        head = f"{len(problems)} phrases to put plainly:"
        pytest.fail("\n".join([head, *problems]), pytrace=False)


@pytest.mark.parametrize("package", _packages())
def test_the_program_speaks_plainly(package: str) -> None:
    _check({path: _module(path) for path in _packages()[package]})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_documents_speak_plainly(path: Path) -> None:
    _check({path: _document(path)})


@pytest.mark.parametrize(
    ("phrase", "plain"),
    [
        ("; is kill meant?", '; did you mean "kill"?'),
        ('"x" is no style of Rich', '"x" is not a valid Rich style'),
        ("/a/b is no TOML: line 1", "/a/b is not valid TOML: line 1"),
        ("x is no number of seconds", "x is not a number of seconds"),
        ("x is no list of numbers", "x is not a comma-separated list of numbers"),
        ("x is none of user=, pid=", "--only takes user=, pid=; got x"),
        ("of what", "filters"),
        ("how it looks", "appearance"),
        ("how often", "timing"),
        ("the settings, as a file of them", "print the current settings as a TOML file"),
        (
            "take what cannot be inspected for no holder",
            "treat processes that cannot be inspected as not holding the TPU",
        ),
        ("until SIGKILL follows", "seconds before SIGKILL"),
        ("the time of grace", "the grace period"),
        ("nothing is ended unasked", "specify PIDs, --stale or --chip"),
        ("Those are ended that every filter lets through", "Ends holders that match every filter"),
        ("nothing to end: no holder that is meant", "nothing to do: no holder matches"),
        ("its pid is another process's by now", "PID was reused by another process"),
        ("holds the TPU no more: not signalled", "no longer holds the TPU; not signalled"),
        ("it is no regular file", "not a regular file"),
        ("nobody can see whether X is free", "cannot tell whether X is free"),
        ("Look less, or more, often", "Refresh slower / faster"),
        ("Back in time by 10 s, and forth", "Step 10 s back / forward in time (Shift: 1 min)"),
        ("Sort by the column before, or the next", "Sort by the next / previous column"),
        ("Esc: as it was", "Esc: cancel"),
        ("No command is called that.", "No matching command"),
        (
            "No JAX job on this host shows itself.",
            "No JAX job on this host is reporting to tpusmi.",
        ),
        ("new?: or too small then to be listed", "may have been too small to list at the mark"),
        ("profile of now, 3s old", "current profile, 3s old"),
        ("by sshd 12 under systemd 1", "started by sshd (12), session of systemd (1)"),
        ("accepts and does not answer", "accepts connections but does not respond"),
        ("answers more than is sane", "response too large"),
        ("answered what is no answer", "sent an invalid reply"),
        ("lists what it does not have", "advertises metrics it then rejects"),
        (
            "would stop the job for 1.2 s each time",
            "would pause the job for 1.2 s each time; disabled",
        ),
        ("in a loop whose length nobody knows", "inside a loop of unknown length"),
        ("has run nothing on it for 9 min", "has held the TPU idle for 9 min"),
        ("as nobody can tell whose they are", "dropped: cannot be matched to a device"),
        ("Whoever works is not stale", "A holder that is working is never stale"),
        ("no means that nothing speaks for it", '"no" means no sign of staleness'),
        ("Then, for everybody who is meant", "For each target it opens a pidfd"),
        ("is left in peace", "is not killed"),
        ("means nothing by being there", "The existence of the file means nothing"),
        ("What takes longer to ask of a holder", "Values that take longer to read are in `ps`"),
        ("The number in a title is of now.", "Titles show the current value."),
        ("It stands, with MXU at 0", "Constant while MXU is 0"),
        ("how long ago the moment is that you see", "how far back in time the view is"),
        ("and the chips that ran, too.", "and also the chips that ran."),
        ("True when it was so long ago", "True when it was that long ago"),
        ("in such a one, the group is 0", "in a container like that, the group is 0"),
        ("Those that hold a chip.", "Processes that hold a chip."),
        ("One that has ended.", "A process that has ended."),
        ("Open what is selected", "Open the selected item"),
        ("the port that a server has told", "the port that a server has reported"),
        ("they are said on the screen", "they are said to be harmless"),
        ("Of CLOCK_MONOTONIC.", "Seconds of CLOCK_MONOTONIC."),
        ("It holds nothing any more.", "There are no more than two, and no more sockets."),
        ("is told the kernel's word", "cores are told apart by color; as of now"),
        ("what is none of them, is none.", "`is_free` is None if tpusmi cannot know"),
        ("is none of 4", "there is none; the port is no longer open; there may be no room"),
    ],
)  # fmt: skip
def test_the_list_catches_the_phrase_and_not_its_plain_version(phrase: str, plain: str) -> None:
    assert list(_stumbles(Prose(1, phrase))) != []
    assert list(_stumbles(Prose(1, plain))) == []


def test_a_phrase_is_reported_at_its_own_line_in_strings_comments_and_fstrings() -> None:
    source = '"""One.\n\nIt is no port.\n"""\nx = f"{y} is no {z} name"\n# holds\n# it no more.\n'
    texts = [*_strings(ast.parse(source)), *_comments(source)]
    assert sorted(line for text in texts for line, _ in _stumbles(text)) == [3, 5, 7]


def test_identifiers_are_not_words() -> None:
    source = "def is_no_longer(nobody, so_long):\n    return nobody.by_now\n"
    assert [*_strings(ast.parse(source)), *_comments(source)] == []
