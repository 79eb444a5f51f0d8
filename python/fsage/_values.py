"""Arguments as people write them."""

from __future__ import annotations

import json
from typing import Any, Optional, Union

from . import _fsage

Size = Union[int, str]
"""Bytes, or text as on the command line: ``"64K"``, ``"16G"``, ``"1.5T"`` (powers of 1024)."""

Duration = Union[int, float, str]
"""Nanoseconds, or text as on the command line: ``"50us"``, ``"1.5ms"``, ``"2s"``."""


def size_bytes(size: Size) -> int:
    """A size in bytes."""
    return _fsage.size_bytes(size) if isinstance(size, str) else size


def optional_size(size: Optional[Size]) -> Optional[int]:
    """A size in bytes, where there is one."""
    return None if size is None else size_bytes(size)


def duration_ns(duration: Duration) -> float:
    """A duration in nanoseconds."""
    return _fsage.duration_ns(duration) if isinstance(duration, str) else float(duration)


def loads(text: str) -> dict[str, Any]:
    """A JSON object."""
    found: dict[str, Any] = json.loads(text)
    return found


def table(rows: Any) -> _fsage.Table:
    """A table of rows: a list of dictionaries."""
    return _fsage.Table.from_json(json.dumps(rows))
