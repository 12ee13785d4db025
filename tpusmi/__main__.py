"""`python -m tpusmi` is `tpusmi`."""

import sys

from tpusmi.cli import main

sys.exit(main())
