"""Arguments as people write them."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable
from typing import Any, Optional, Union

from . import _fsage
from .errors import UsageError

Size = Union[int, str]
"""Bytes, or text as on the command line: ``"64K"``, ``"16G"``, ``"1.5T"`` (powers of 1024)."""

Duration = Union[int, float, str]
"""Nanoseconds, or text as on the command line: ``"50us"``, ``"1.5ms"``, ``"2s"``."""


def whole(what: str, number: Any, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """A whole number between these."""
    if isinstance(number, bool) or not hasattr(type(number), "__index__"):
        raise UsageError(f"{what} {number!r}: a whole number is needed")
    found = operator.index(number)
    if not least <= found <= most:
        raise UsageError(f"{what} {found}: a number from {least} to {most} is needed")
    return found


def size_bytes(size: Size) -> int:
    """A size in bytes."""
    return _fsage.size_bytes(size) if isinstance(size, str) else whole("size", size)


def names(columns: Union[str, Iterable[str]]) -> list[str]:
    """Names of columns; one may stand alone."""
    return [columns] if isinstance(columns, str) else list(columns)


def optional_size(size: Optional[Size]) -> Optional[int]:
    """A size in bytes, where there is one."""
    return None if size is None else size_bytes(size)


def duration_ns(duration: Duration) -> float:
    """A duration in nanoseconds."""
    try:
        return _fsage.duration_ns(duration) if isinstance(duration, str) else float(duration)
    except (TypeError, OverflowError):
        raise UsageError(f"duration {duration!r}: nanoseconds, or text such as \"50us\", are needed") from None


def loads(text: str) -> dict[str, Any]:
    """A JSON object."""
    found: dict[str, Any] = json.loads(text)
    return found


def table(rows: Any) -> _fsage.Table:
    """A table of rows: a list of dictionaries."""
    return _fsage.Table.from_json(json.dumps(rows))
