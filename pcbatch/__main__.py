"""`python -m pcbatch`: the command line."""

import sys

from pcbatch.cli import main

sys.exit(main())
