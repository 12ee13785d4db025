"""The classes of the Python API for editors are those of the table of JSON keys."""

from __future__ import annotations

import ast
import pydoc
import sys
from pathlib import Path

import pytest
from support import snapshots

import tpusmi
from tpusmi.api import objects
from tpusmi.api.attribute_docs import ATTRIBUTE_DOCS
from tpusmi.api.class_docs import CLASS_DOCS, HELD_AS
from tpusmi.api.kinds import object_kinds
from tpusmi.model.jsonkeys import SNAPSHOT

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "assets"))

import make_stub  # noqa: E402

PACKAGE = Path(tpusmi.__file__).parent
STUB = (PACKAGE / "api" / "objects.pyi").read_text("utf-8")


def test_the_stub_is_the_one_that_the_table_makes() -> None:
    assert make_stub.stub() == STUB, "run: python assets/make_stub.py"


def test_the_stub_names_what_the_classes_have() -> None:
    classes = {n.name: n for n in ast.parse(STUB).body if isinstance(n, ast.ClassDef)}
    assert set(classes) == set(objects.CLASSES) == set(CLASS_DOCS)
    for name, node in classes.items():
        named = [f.name for f in node.body if isinstance(f, ast.FunctionDef)]
        assert named == [*object_kinds()[name].attributes]
        assert [
            a for a in named if not isinstance(getattr(objects.CLASSES[name], a), property)
        ] == []


def test_every_key_that_holds_objects_has_a_class() -> None:
    held = {
        attribute.of for kind in object_kinds().values() for attribute in kind.attributes.values()
    }
    assert set(HELD_AS.values()) == held - {""} == set(CLASS_DOCS) - {"Snapshot"}


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("name", [n for n in dir(tpusmi) if n != "__version__"])
def test_a_type_checker_sees_every_public_name(name: str) -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    checked = next(n for n in tree.body if isinstance(n, ast.If))
    imports = [n for n in checked.body if isinstance(n, ast.ImportFrom)]
    homes = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    assert homes[name] == tpusmi._PUBLIC[name]
    public = name in tpusmi.__all__ or any(a.asname == name for n in imports for a in n.names)
    assert public, f"mypy --strict would not let others import it: {name} as {name}"


def test_dir_has_the_public_names_only() -> None:
    names = dir(tpusmi)
    assert len(names) == len(set(names))
    assert set(names) == {*tpusmi._PUBLIC, "__version__"}
    assert {*tpusmi.__all__} <= set(names)
    with pytest.raises(AttributeError, match="no attribute 'snaphot'"):
        tpusmi.snaphot  # type: ignore[attr-defined]  # noqa: B018


def test_help_says_what_to_call_and_what_comes_back() -> None:
    whole = pydoc.render_doc(tpusmi, renderer=pydoc.plaintext)
    for words in ("s.devices[0].hbm_used_bytes", "for s in tpusmi.watch(5):", "docs/python.md"):
        assert words in whole
    assert "method of" not in whole
    step = pydoc.render_doc(tpusmi.step, renderer=pydoc.plaintext)
    assert "with tpusmi.step():" in step
    assert "one step of the whole job" in step
    for words in ("devices", "process.step_time_s.p95", "to_pandas()", "docs/json.md", "simulate="):
        assert words in (tpusmi.snapshot.__doc__ or "")


def test_the_objects_have_the_values_of_the_json() -> None:
    from tpusmi.api.reading import _view

    for make in (snapshots.everything, snapshots.nothing, snapshots.machine):
        s = make()
        whole = _view(s)
        assert whole.to_dict() == s.to_dict()
        assert_same(whole, whole.to_dict())
        assert [c.to_dict() for c in whole.chips] == s.to_dict()["chips"]


def assert_same(item: object, plain: object) -> None:
    """Every attribute is the value of its key, also inside of objects, lists and dictionaries."""
    if isinstance(item, tuple):
        assert isinstance(plain, list)
        for one, other in zip(item, plain, strict=True):
            assert_same(one, other)
    elif isinstance(item, dict):
        assert isinstance(plain, dict)
        assert item.keys() == plain.keys()
        for name, one in item.items():
            assert_same(one, plain[name])
    elif isinstance(plain, dict):
        for name, other in plain.items():
            one = getattr(item, name)
            if type(item).__name__ == "Process" and name == "devices":
                one = tuple(device.index for device in one)
            assert_same(one, other)
        assert repr(item).startswith(f"<{type(item).__name__} ")
        assert "\n" not in repr(item)
        assert len(repr(item)) < 400
    else:
        assert item == plain


def test_the_stub_is_in_the_order_of_the_json() -> None:
    assert [*object_kinds()["Snapshot"].attributes] == [key.name for key in SNAPSHOT.keys]


def test_help_says_what_every_attribute_is() -> None:
    kinds = object_kinds()
    for kind, made in kinds.items():
        assert [kind, *(name for name, has in made.attributes.items() if not has.help)] == [kind]
    for kind, docs in ATTRIBUTE_DOCS.items():
        described = {k.name for k in kinds[kind].keys.keys if k.help}
        assert not described & set(docs), "the table of JSON keys has words for these"
