"""Programs that few machines lack: without one of them the tests that need it are skipped."""

from __future__ import annotations

import shutil

import pytest

USUAL = {"bash", "setsid", "unshare"}


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip where one of them is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} here")
