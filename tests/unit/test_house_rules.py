"""How the code of the package is written, as far as a program can check it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "tpusmi"
LINES_MOST = 300
POSITIONAL_MOST = 4
BROAD = {"Exception", "BaseException"}

SOURCES = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in ROOT.rglob("*.py")}
TREES = {path: ast.parse(text) for path, text in SOURCES.items()}


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for path, tree in TREES.items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def is_record(node: ast.ClassDef) -> bool:
    marks = [ast.unparse(part) for part in (*node.bases, *node.decorator_list)]
    return any(mark == "NamedTuple" or "dataclass" in mark for mark in marks)


OFTEN_BUILT = {"Reading"}
"""Built by the thousand at each look: keywords would take as long again."""
RECORDS = {node.name for _, node in classes() if is_record(node)} - OFTEN_BUILT


def table_lines(path: str) -> set[int]:
    """The lines of a file that the formatter leaves alone: they are tables."""
    lines, is_off = set(), False
    for number, line in enumerate(SOURCES[path].splitlines(), 1):
        is_off = "# fmt: off" in line or (is_off and "# fmt: on" not in line)
        lines |= {number} if is_off else set()
    ends = {n for n, line in enumerate(SOURCES[path].splitlines(), 1) if "# fmt: skip" in line}
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.stmt) and node.end_lineno in ends:
            lines |= {*range(node.lineno, node.end_lineno + 1)}
    return lines


def is_display(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Tuple | ast.List | ast.Dict)


def starred_displays(tree: ast.Module) -> Iterator[int]:
    """Lines with `*(a, b)` or `**{"a": b}`, which only split what could be written in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Starred) and is_display(node.value):
            yield node.lineno
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value.lineno for key, value in pairs if key is None and is_display(value))
        elif isinstance(node, ast.keyword) and node.arg is None and is_display(node.value):
            yield node.value.lineno


@pytest.mark.parametrize("path", TREES)
def test_no_literal_is_unpacked_into_another(path: str) -> None:
    assert [*starred_displays(TREES[path])] == []


@pytest.mark.parametrize("path", TREES)
def test_a_record_with_many_fields_is_built_by_keyword_outside_of_tables(path: str) -> None:
    tables = table_lines(path)
    positional = [
        f"{node.func.id} in line {node.lineno}"
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in RECORDS
        and node.lineno not in tables
        and sum(not isinstance(value, ast.Starred) for value in node.args) > POSITIONAL_MOST
    ]
    assert positional == []


def repeated(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_a_class_name_means_one_class() -> None:
    places = defaultdict(list)
    for path, node in classes():
        places[node.name].append(path)
    assert repeated(places) == {}


def test_a_file_name_is_that_of_one_file() -> None:
    """They are all that the tabs of an editor show."""
    places = defaultdict(list)
    for path in TREES:
        if not path.endswith(("__init__.py", "__main__.py")):
            places[path.rpartition("/")[2]].append(path)
    assert repeated(places) == {}


def test_no_file_is_long() -> None:
    lengths = {path: len(text.splitlines()) for path, text in SOURCES.items()}
    assert {path: count for path, count in lengths.items() if count > LINES_MOST} == {}


def caught(handler: ast.ExceptHandler) -> set[str]:
    """The names of the exceptions that it catches; a bare `except:` catches them all."""
    return BROAD if handler.type is None else {*re.findall(r"\w+", ast.unparse(handler.type))}


@pytest.mark.parametrize("path", TREES)
def test_a_broad_except_raises_again_or_says_why_it_does_not(path: str) -> None:
    lines = SOURCES[path].splitlines()
    silent = [
        handler.lineno
        for handler in ast.walk(TREES[path])
        if isinstance(handler, ast.ExceptHandler)
        and caught(handler) & BROAD
        and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        and not re.sub(r"# noqa: \w+", "", lines[handler.lineno - 1]).count("#")
    ]
    assert silent == []
