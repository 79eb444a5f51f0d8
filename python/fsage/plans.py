"""Aging plans: `Plan`, `Operation`, `write_plan`; and what came of one: `Aged`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Optional, Union

from . import _fsage
from ._fsage import Table
from ._values import Size, loads, names, size_bytes, table, whole
from .errors import UsageError
from .surveys import Survey

__all__ = ["DAY_NS", "Aged", "Operation", "Plan", "write_plan"]

DAY_NS = 86_400_000_000_000
"""A simulated day, in nanoseconds."""

_Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Operation:
    """One planned operation.

    `kind` is one of ``mkdir``, ``rmdir``, ``create``, ``symlink``, ``append``, ``overwrite``, ``truncate``,
    ``punch_hole``, ``rename``,
    ``fsync``, ``delete``, ``read``. Files and directories are numbers that are never used twice; 0 is the root, which is there.
    """

    t_ns: int
    """Simulated time since the beginning, nanoseconds; never before the operation ahead of it."""
    kind: str
    """What is done."""
    node: int
    """To which file, link or directory."""
    dir: int = 0
    """The directory of the new name (``mkdir``, ``create``, ``symlink``, ``rename``)."""
    size_bytes: int = 0
    """How many bytes: the first write of ``create``, what ``append`` adds, the new length of ``truncate``, a range of
    the others."""
    offset_bytes: int = 0
    """Where in the file, for ``overwrite``, ``punch_hole`` and ``read``."""
    name: Optional[Union[str, bytes]] = None
    """The new name's last component; one is made from the number where there is none."""


class Plan:
    """An aging workload: the file `NAME.aging` that `fsage plan` or `write_plan` wrote."""

    def __init__(self, path: _Path) -> None:
        self.path = Path(path)
        self._own = _fsage.Plan(path)

    @property
    def meta(self) -> dict[str, Any]:
        """What it says of itself: source, seed, capacity, days, counts."""
        return loads(self._own.meta())

    @property
    def utilisation(self) -> Table:
        """Planned use at the end of each simulated day: `files`, `used_bytes`, `used_share`."""
        return table(self.meta["utilisation"])

    def operations(self, columns: Union[str, Iterable[str]] = ()) -> Table:
        """A row for each operation (docs/formats.md): of the columns named, or of all."""
        return self._own.operations(names(columns))

    def verify(self) -> None:
        """Goes through it and checks that each operation follows from those before it. Raises `InputError` where one
        does not."""
        self._own.verify()

    def __repr__(self) -> str:
        meta = self.meta
        return f"<fsage.Plan {self.path.name}: {meta['counts']['operations']} operations, {meta['days']} days>"


def _given(operation: Operation) -> tuple[int, str, int, int, Optional[bytes], int, int]:
    if not isinstance(operation, Operation):
        raise UsageError(f"{operation!r} is no fsage.Operation")
    name = os.fsencode(operation.name) if isinstance(operation.name, str) else operation.name
    o = operation
    return (o.t_ns, o.kind, o.node, o.dir, name, o.offset_bytes, o.size_bytes)


def write_plan(
    path: _Path,
    operations: Iterable[Operation],
    *,
    capacity: Size,
    block: Size = 4096,
    days: Optional[int] = None,
    name: str = "",
    description: str = "",
    parameters: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Plan:
    """Writes an aging plan from an iterator of operations, which may be a generator of any length: a few thousand are
    held at a time.

    Each operation is checked against the tree that those before it made; the first that contradicts it raises
    `UsageError` or `InputError`
    with its number. Then, and where the iterator raises, there is no file.

    Args:
        path: the file to write, `NAME.aging`.
        operations: in the order of their times.
        capacity: size of the file system planned for, as `df` counts it.
        block: unit in which planned use is rounded up for each file.
        days: simulated days (up to the last operation where not given).
        name: what the plan is called.
        description: where it comes from, in a sentence or two.
        parameters: what it was made with, kept in the file.
        seed: of the random choices behind it, for the record.
        overwrite: replace a file of that name.
    """
    if not overwrite and Path(path).exists():
        raise UsageError(f"{path}: is already there and is not overwritten; say overwrite=True or name another")
    writer = _fsage.PlanWriter(path, size_bytes(capacity), size_bytes(block))
    try:
        stream = iter(operations)
        while True:
            some = [_given(operation) for operation in islice(stream, 4096)]
            if not some:
                break
            try:
                writer.push(some)
            except (OverflowError, TypeError) as error:
                raise UsageError(f"one of {len(some)} operations has a number that none can be: {error}") from error
        writer.finish(name, description, json.dumps(dict(parameters or {})), whole("seed", seed), days)
    finally:
        writer.abandon()
    return Plan(path)


class Aged:
    """What came of a replayed plan. `document` has everything (docs/formats.md)."""

    def __init__(self, document: dict[str, Any], surveys: list[dict[str, Any]]) -> None:
        self.document = document
        self.surveys = [(float(s["day"]), Survey(s["survey"])) for s in surveys]
        """Surveys on the way: the simulated day of each, and the survey."""

    @property
    def days(self) -> Table:
        """A row for each simulated day: what was done, planned and actual use."""
        return table(self.document["days"])

    @property
    def course(self) -> Table:
        """A row for each survey: `day`, `layout_score`, `files`, `used_share`."""
        rows = []
        for day, survey in self.surveys:
            source = survey.source
            used = 1.0 - source["free_bytes"] / source["total_bytes"]
            rows.append(
                {"day": day, "layout_score": survey.layout_score, "files": survey.walked["files"], "used_share": used}
            )
        return table(rows)

    def __repr__(self) -> str:
        return f"<fsage.Aged: {self.document['days_done']} days, {self.document['files']} files>"
