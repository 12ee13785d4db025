"""`python -m tpusmi.wire FILE…` prints segments as text."""

import sys

from tpusmi.cli.exits import ended
from tpusmi.wire.dump import NOT_READABLE, dump


def main(paths: list[str]) -> int:
    """Print each file; 1 when one of them is no segment, which stderr says."""
    if not paths:
        sys.stderr.write("usage: python -m tpusmi.wire FILE…\n")
        return 2
    code = 0
    for path in paths:
        if len(paths) > 1:
            sys.stdout.write(f"== {path}\n")
        for line in dump(path):
            refused = line.startswith(NOT_READABLE)
            (sys.stderr if refused else sys.stdout).write(
                f"{path} {line}\n" if refused else f"{line}\n"
            )
            code = max(code, int(refused))
    return code


if __name__ == "__main__":
    sys.exit(ended(lambda: main(sys.argv[1:])))
