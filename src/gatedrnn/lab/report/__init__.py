"""Reports: a folder of runs as Markdown, figures and one interactive page, compared with the paper's values."""

from __future__ import annotations

from gatedrnn.lab.report.folder import PAGE
from gatedrnn.lab.report.make import make_report

__all__ = ["PAGE", "make_report"]
