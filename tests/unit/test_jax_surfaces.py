"""The names of JAX that the slice uses, as each supported version has them: stand-ins are made from
`tests/data/jax_surfaces.json`, which `tests/support/jax_surfaces.py` recorded. Jobs with the oldest
version and with the newest run in tests/processes.
"""

from __future__ import annotations

import json
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.jax_surfaces import recorded

from tpusmi.agent import slice_service

RECORDED = json.loads((Path(__file__).parents[1] / "data/jax_surfaces.json").read_text("utf-8"))
STATE = {"process_id": 1, "num_processes": 3, "coordinator_address": "10.0.0.1:8476"}


def client_of(version: dict[str, Any]) -> tuple[Any, list[Any]]:
    """A client whose functions take what those of that version take; and the calls of it."""
    calls: list[Any] = []
    functions: dict[str, Any] = {"note": calls.append}
    for name, signature in version["client"].items():
        body = f"def {signature.splitlines()[0]}:\n note(({name!r}, locals()))\n"
        exec(body + (" return [('tpusmi/slice/2', 'text')]" if "dir" in name else ""), functions)
    methods = {name: functions[name] for name in version["client"]}
    return type("Client", (), methods)(), calls


@pytest.mark.parametrize("version", RECORDED, ids=lambda r: r["version"])
def test_every_version_has_what_the_slice_uses(
    version: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, calls = client_of(version)
    module: Any = types.ModuleType("jax._src.distributed")
    state = {**dict.fromkeys(version["state"]), "client": client}
    state |= {name: value for name, value in STATE.items() if name in version["state"]}
    module.global_state = types.SimpleNamespace(**state)
    monkeypatch.setitem(sys.modules, "jax._src.distributed", module)
    service = slice_service.find()
    assert service is not None
    assert service.trouble == ""
    assert (service.index, service.count, service.is_current()) == (1, 3, True)
    service.put("text")
    assert service.texts() == {2: "text"}
    service.remove()
    names, told = zip(*calls, strict=True)
    assert names == ("key_value_set", "key_value_dir_get", "key_value_delete")
    assert told[0]["allow_overwrite"] is True
    assert service.job != slice_service.CoordinationService(client, 1, 3, 0).job


def test_the_installed_version_is_as_the_newest_one_that_is_recorded() -> None:
    if find_spec("jax") is None:
        pytest.skip("no JAX here")
    here = recorded(sys.executable)
    not_newer = [r for r in RECORDED if _numbers(r["version"]) <= _numbers(here["version"])]
    newest = max(not_newer, key=lambda r: _numbers(r["version"]))
    assert {*newest["state"]} <= {*here["state"]}
    assert newest["client"] == here["client"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
