"""A machine with a node of a TPU and no PCI bus: a mount namespace with a /dev/vfio of its own."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import mounts
from support.commands import environment

ON_A_MACHINE = f"""
set -e
mkdir -p /dev/vfio && mount -t tmpfs none /dev/vfio && mknod -m 666 /dev/vfio/0 c 1 3
{shlex.join([sys.executable, mounts.__file__])} /tmp "$TPUSMI_DIR"
exec 3<>/dev/vfio/0
"$@"
"""


def on_a_machine(
    tmp_path: Path, *command: str, script: str = ON_A_MACHINE, namespaces: tuple[str, ...] = ("-m",)
) -> subprocess.CompletedProcess[str]:
    """A command in a mount namespace whose /dev has a node of a TPU, which it has open itself."""
    if subprocess.run(["unshare", *namespaces, "true"], check=False).returncode:
        pytest.skip("no such namespace here")
    return subprocess.run(
        ["unshare", *namespaces, "sh", "-c", script, "sh", *command],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
