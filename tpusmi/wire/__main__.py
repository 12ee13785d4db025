"""`python -m tpusmi.wire FILE…` prints segments as text."""

import sys

from tpusmi.wire.dump import dump

for path in sys.argv[1:] or sys.exit("usage: python -m tpusmi.wire FILE…"):
    for line in dump(path):
        sys.stdout.write(line + "\n")
