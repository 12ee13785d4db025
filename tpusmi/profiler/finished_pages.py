"""A profile from a folder of pages that xprof made earlier: `overview_page.json`, and so on."""

from __future__ import annotations

import os
import stat
from itertools import islice
from typing import Any

from tpusmi.profiler.xprof_child import trimmed
from tpusmi.profiler.xprof_figures import profile_of
from tpusmi.profiler.xprof_tables import property_of
from tpusmi.text import clean
from tpusmi.trace.figures import FILE, Capture, TraceProfile
from tpusmi.trace.limits import MIB
from tpusmi.trace.plain_objects import json_in
from tpusmi.trace.troubles import CaptureError, Trouble

PAGES = {
    "overview_page": ("overview_page",),
    "input_pipeline_analyzer": ("input_pipeline_analyzer", "input_pipeline"),
    "op_profile": ("op_profile",),
    "hlo_stats": ("hlo_stats", "hlo_op_stats"),
    "roofline_model": ("roofline_model",),
    "memory_profile": ("memory_profile",),
}
"""The names of their files, by xprof's newest name of the page."""
ENDINGS = (".json", ".json.gz")
ENTRIES_MOST = 10_000
"""Names in the folder that are looked at."""
PAGE_BYTES_MOST = 32 * MIB
"""The size of one page, unpacked."""
CHUNK = MIB
_MALFORMED = (LookupError, TypeError, AttributeError)
_BAD = (OSError, EOFError, ValueError, *_MALFORMED)
ALL_HOSTS = "all-hosts-in-one-graph"


def read_pages(folder: str) -> TraceProfile:
    """The profile that the folder's pages show. Raises CaptureError: ABSENT if it has none, DENIED
    if it cannot be opened, and UNREADABLE if no page can be read.
    """
    paths = _paths(folder)
    if not paths:
        raise CaptureError(Trouble.ABSENT, f"{folder}: no pages of xprof are in this folder")
    pages, notes = {}, []
    for name, path in paths.items():
        try:
            pages[name] = trimmed(name, _page(path))
        except _BAD as error:
            notes.append(f"{os.path.basename(path)} cannot be read: {_reason(error)}.")
    if not pages:
        raise CaptureError(Trouble.UNREADABLE, f"{folder}: {notes[0].rstrip('.')}")
    capture = Capture(how=FILE, target=folder, host=_host(pages))
    profile = profile_of(pages, capture)
    return profile._replace(notes=(*notes, *profile.notes))


def _paths(folder: str) -> dict[str, str]:
    """The file of each page. Some tools put the host before its name: `HOST.overview_page.json`."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, ENTRIES_MOST))
    except OSError as error:
        trouble = Trouble.DENIED if isinstance(error, PermissionError) else Trouble.ABSENT
        raise CaptureError(trouble, f"{folder}: {error.strerror}") from error
    paths = {}
    for page, files in PAGES.items():
        for name in reversed(names):
            stem = name.removesuffix(".gz").removesuffix(".json")
            if name.endswith(ENDINGS) and stem.rpartition(".")[2] in files:
                paths[page] = os.path.join(folder, name)
    return paths


def _page(path: str) -> Any:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a file")
        return json_in(_bytes(file, path.endswith(".gz")))


def _bytes(file: Any, is_packed: bool) -> bytes:
    if is_packed:
        import gzip

        file = gzip.GzipFile(fileobj=file)
    data = bytearray()
    while chunk := file.read(CHUNK):
        data += chunk
        if len(data) > PAGE_BYTES_MOST:
            raise ValueError(f"it has more than {PAGE_BYTES_MOST // MIB} MiB")
    return bytes(data)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, _MALFORMED):
        return "it is not a page of xprof"
    return clean(str(error), 200)


def _host(pages: dict[str, Any]) -> str | None:
    """The host of the trace, where a page names a single one."""
    names = property_of(pages.get("input_pipeline_analyzer"), "hostnames")
    if not isinstance(names, str):
        return None
    hosts = [name.strip() for name in names[:4096].split(",") if name.strip()]
    hosts = [name for name in hosts if name.lower() != ALL_HOSTS]
    return clean(hosts[0], 100) if len(hosts) == 1 else None
