"""Predict how fast a workload runs on a file system, age file systems, and try designs in a laboratory.

Times are integer or floating nanoseconds (``_ns``), sizes are bytes (``_bytes``), shares are between 0 and 1. Sizes that are arguments
may be written as on the command line (``"16G"``), times too (``"50us"``).
"""

from __future__ import annotations

from ._fsage import __version__

__all__ = ["__version__"]
