"""``python -m gatedrnn.cli`` is ``gatedrnn``."""

from __future__ import annotations

import sys

from gatedrnn.cli import main

sys.exit(main())
