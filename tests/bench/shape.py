"""The shape of the code: sizes of modules and functions, docstrings, comments, broad excepts.

    python tests/bench/shape.py [TREE ...]

One column for each tree, this one by default: a checkout of an older commit beside it shows what
a change did. Modules of five code lines or fewer are left out of the sizes of modules; the length
of a function includes its signature and docstring.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VAGUE = ("found", "known", "told", "said", "asked", "every")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(trees: Sequence[str]) -> None:
    columns = [shape(Path(tree)) for tree in trees or [str(ROOT)]]
    for name in columns[0]:
        print(f"{name:<42}" + "".join(f"{column[name]:>22}" for column in columns))


def shape(tree: Path) -> dict[str, str]:
    """Each figure by its name."""
    files = sorted((tree / "tpusmi").rglob("*.py"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    modules = {file: ast.parse(text) for file, text in texts.items()}
    sizes = sorted(n for f in files if (n := len(texts[f].splitlines())) and code(texts[f]) > 5)
    functions = [x for m in modules.values() for x in ast.walk(m) if isinstance(x, Function)]
    lengths = sorted(x.end_lineno - x.lineno + 1 for x in functions if x.end_lineno)
    middle = (lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10], lengths[-1])
    public = [x for x in functions if not x.name.startswith("_")]
    arguments = [a for x in functions for a in arguments_of(x)]
    lines = sum(len(text.splitlines()) for text in texts.values())
    code_lines = sum(map(code, texts.values()))
    classes = Counter(
        x.name for m in modules.values() for x in ast.walk(m) if isinstance(x, ast.ClassDef)
    )
    names = Counter(file.name for file in files if file.name != "__init__.py")
    tests = sum(len(t.read_text("utf-8").splitlines()) for t in (tree / "tests").rglob("*.py"))
    pictures = [*(tree / "tests").rglob("*.svg"), *(tree / "tests").rglob("*.raw")]
    return {
        "files / lines": f"{len(files)} / {lines:,}",
        "code / docstring lines": f"{code_lines:,} / {sum(map(docstrings, modules.values())):,}",
        "import lines": f"{sum(map(imports, modules.values())):,}",
        "module median / max": f"{statistics.median(sizes):.0f} / {sizes[-1]}",
        "functions": f"{len(functions):,}",
        "function median / p90 / max": " / ".join(map(str, middle)),
        "functions of one to three lines": str(sum(n <= 3 for n in lengths)),
        "public functions with a docstring": f"{share(map(ast.get_docstring, public)):.0%}",
        "annotated arguments": f"{share(a.annotation for a in arguments):.0%}",
        "broad excepts": str(sum(text.count("noqa: BLE001") for text in texts.values())),
        "comments per code line": f"{sum(map(comments, texts.values())) / code_lines:.1%}",
        "class names used twice or more": str(sum(n > 1 for n in classes.values())),
        "file names used twice or more": str(sum(n > 1 for n in names.values())),
        "vague names (found, known, told, ...)": str(sum(map(vague, modules.values()))),
        "records built by position (5 or more)": str(by_position(modules.values())),
        "test lines / pictures": f"{tests:,} / {len(pictures)}",
    }


def code(text: str) -> int:
    """Lines that are neither blank, nor comment, nor part of a docstring."""
    strings = bare_strings(ast.parse(text))
    inside = {n for x in strings for n in range(x.lineno, (x.end_lineno or x.lineno) + 1)}
    lines = [x.strip() for n, x in enumerate(text.splitlines(), 1) if n not in inside]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def bare_strings(module: ast.Module) -> list[ast.Expr]:
    statements = (x for x in ast.walk(module) if isinstance(x, ast.Expr))
    return [x for x in statements if isinstance(getattr(x.value, "value", None), str)]


def docstrings(module: ast.Module) -> int:
    return sum((x.end_lineno or x.lineno) - x.lineno + 1 for x in bare_strings(module))


def imports(module: ast.Module) -> int:
    found = (x for x in ast.walk(module) if isinstance(x, ast.Import | ast.ImportFrom))
    return sum((x.end_lineno or x.lineno) - x.lineno + 1 for x in found)


def comments(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def arguments_of(function: Function) -> Iterator[ast.arg]:
    spec = function.args
    for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if argument.arg not in ("self", "cls"):
            yield argument


def share(values: Iterator[object] | map[object]) -> float:
    present = [bool(value) for value in values]
    return sum(present) / len(present)


def vague(module: ast.Module) -> int:
    stored = (
        x.id for x in ast.walk(module) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)
    )
    given = (x.arg for x in ast.walk(module) if isinstance(x, ast.arg))
    return sum(name in VAGUE for name in (*stored, *given))


def by_position(modules: Iterator[ast.Module] | Sequence[ast.Module]) -> int:
    trees = list(modules)
    records = {
        x.name for m in trees for x in ast.walk(m) if isinstance(x, ast.ClassDef)
        for base in x.bases if isinstance(base, ast.Name) and base.id == "NamedTuple"
    }  # fmt: skip
    calls = (x for m in trees for x in ast.walk(m) if isinstance(x, ast.Call))
    named = (x for x in calls if isinstance(x.func, ast.Name) and x.func.id in records)
    return sum(len(x.args) >= 5 for x in named)


if __name__ == "__main__":
    main(sys.argv[1:])
