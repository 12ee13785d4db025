"""Every regular expression of the package takes a time that grows with the text and no faster.

They are found in the source, so that none can be forgotten: text from outside holds the interpreter
for as long as a pattern looks at it, and nothing can end that.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tpusmi
from tpusmi.trace.event_blocks import event_pattern

ROOT = Path(tpusmi.__file__).parent
FUNCTIONS = {
    **dict.fromkeys(("compile", "findall", "finditer", "search", "split", "sub", "subn"), "find"),
    **{"match": "match", "fullmatch": "fullmatch"},
}
OF_OTHERS = {
    ("tpusmi.simulate.metric_answers", "pattern"),  # a client sends it, as libtpu lets it
    ("tpusmi.report.patterns", "piece"),  # typed by the user; a test bounds its time
    ("tpusmi.trace.event_blocks", "pattern"),  # has ids of the trace in it: below
    ("tpusmi.trace.host_plane", "pattern"),  # some words, one of which is searched
}
"""Not patterns of ours, or made anew for each file."""
LONG = 64 * 1024
SHORT = 4096
SUSPECT_S, MOST_S = 0.005, 2.0
"""A short text may take so long; one that takes longer is tried at twice that length."""
TWICE_MOST_S = MOST_S / (LONG // (2 * SHORT)) ** 2
"""That may take so long, and the full length is within MOST_S even where the time grows with the
square of the length. One that takes longer is tried at its full length; so is each that was suspect
when short, where the time grows with the cube or faster.
"""
FOREIGN = "\x01"
"""At the end of a text: matches nothing, so that every other way to match is tried."""


class Pattern(NamedTuple):
    where: str
    text: str
    flags: int
    how: str

    @property
    def run(self) -> Callable[[str], object]:
        compiled = re.compile(self.text, self.flags)
        if self.how == "find":
            return lambda text: sum(1 for _ in compiled.finditer(text))
        return getattr(compiled, self.how)  # type: ignore[no-any-return]


def calls_in(source: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source.read_text())):
        assert not (isinstance(node, ast.ImportFrom) and node.module == "re"), source
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in FUNCTIONS
        ):
            yield node


def patterns_in(source: Path) -> Iterator[Pattern]:
    module = ".".join(source.relative_to(ROOT.parent).with_suffix("").parts)
    module = module.removesuffix(".__init__")
    for call in calls_in(source):
        assert isinstance(call.func, ast.Attribute)
        first = call.args[0]
        if isinstance(first, ast.Name) and (module, first.id) in OF_OTHERS:
            continue
        names = vars(importlib.import_module(module))
        flags = [a for a in call.args[1:] if ast.unparse(a).startswith("re.")]
        flags += [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
        number = sum(int(evaluated(flag, names)) for flag in flags)
        how = how_used(call, source) or FUNCTIONS[call.func.attr]
        text = evaluated(first, names)
        text = text.decode("latin-1") if isinstance(text, bytes) else text
        yield Pattern(f"{module}:{call.lineno}", text, number, how)


def how_used(call: ast.Call, source: Path) -> str | None:
    """How a compiled pattern with a private name is used, if it only ever looks at one place."""
    tree = ast.parse(source.read_text())
    assigned = [
        n for n in tree.body if isinstance(n, ast.Assign) and ast.dump(n.value) == ast.dump(call)
    ]
    if not assigned or not isinstance(assigned[0].targets[0], ast.Name):
        return None
    name = assigned[0].targets[0].id
    uses = {
        above.attr if isinstance(above, ast.Attribute) else ""
        for above in ast.walk(tree)
        for node in ast.iter_child_nodes(above)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    }
    if not name.startswith("_") or not uses or not uses <= {"match", "fullmatch"}:
        return None
    return min(uses, key=("match", "fullmatch").index)


def evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "pattern", "eval"), names)  # our own source


PATTERNS = [p for source in sorted(ROOT.rglob("*.py")) for p in patterns_in(source)]
PATTERNS += [
    Pattern("events of a trace", event_pattern(*ids).decode("latin-1"), int(re.DOTALL), "match")
    for ids in ((None, None), (3, 4))
]


def pieces(pattern: Pattern) -> list[str]:
    """What a text that is made for this pattern consists of: its characters, one of each of its
    classes, and the words in it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import sre_parse  # re._parser in later Pythons, which warn
    words: set[str] = set()

    def look(parsed: Any) -> None:
        run = ""
        for op, value in [*parsed, (None, None)]:
            if str(op) == "LITERAL":
                run += chr(value)
                continue
            words.update((run,) if run else ())
            run = ""
            for part in value if isinstance(value, (tuple, list)) else ():
                for found in part if isinstance(part, (tuple, list)) else (part,):
                    if isinstance(found, sre_parse.SubPattern):
                        look(found)

    look(sre_parse.parse(pattern.text, pattern.flags))
    characters = {c for c in pattern.text if c not in "()?*|^$"}
    return sorted(words | characters | {"a", "A", "0", "7f", " ", "\n", '"', "-", "."})


def texts(pattern: Pattern) -> Iterator[str]:
    """Each piece again and again, each pair, and mixtures without and with a period."""
    parts = pieces(pattern)
    chance = random.Random(pattern.text)
    yield from parts
    yield from (a + b for a in parts for b in parts if a != b)
    for _ in range(100):
        yield "".join(chance.choices(parts, k=chance.randint(3, 6)))
    for _ in range(30):
        yield "".join(chance.choices(parts, k=LONG))


def took_s(run: Callable[[str], object], text: str) -> float:
    started_s = time.process_time()
    run(text)
    return time.process_time() - started_s


def long(period: str, size: int) -> str:
    return (period * (size // len(period) + 1))[:size]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.where)
def test_a_pattern_takes_no_longer_than_in_proportion_to_the_text(pattern: Pattern) -> None:
    run = pattern.run
    singles = set(pieces(pattern))
    for period in texts(pattern):
        for end in ("", FOREIGN):
            is_tried = period in singles
            if took_s(run, long(period, SHORT) + end) > SUSPECT_S:
                is_tried = took_s(run, long(period, 2 * SHORT) + end) > TWICE_MOST_S
            if is_tried:
                assert took_s(run, long(period, LONG) + end) < MOST_S, (pattern, period[:80], end)


def test_the_patterns_are_found() -> None:
    assert {"tpusmi.text", "tpusmi.sources.libtpu.formats", "tpusmi.sources.holders.procfs"} <= {
        pattern.where.partition(":")[0] for pattern in PATTERNS
    }


@pytest.mark.parametrize("bad", [r"(?<![\w.-])[\"']*(?:key|token)=", r"\beyJ[\w-]{8,}\.", r"\s*x"])
def test_a_pattern_that_looks_at_everything_again_at_each_place_is_told(bad: str) -> None:
    run = Pattern("here", bad, 0, "find").run
    periods = texts(Pattern("here", bad, 0, "find"))
    slowest = max(periods, key=lambda period: took_s(run, long(period, SHORT)))
    # Four times as long, as it may take on a machine that is ten times as fast.
    assert took_s(run, long(slowest, 4 * SHORT)) > 4 * SUSPECT_S
