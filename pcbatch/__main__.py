"""`python -m pcbatch`: the command line."""

import sys

from pcbatch.commands.cli import main

sys.exit(main())
