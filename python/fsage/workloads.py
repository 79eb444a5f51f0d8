"""Recorded workloads: `Workload`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from . import _fsage
from ._fsage import Table
from ._values import loads, names

__all__ = ["Workload"]


class Workload:
    """A recorded workload: the directory `NAME.workload` that `fsage record` or `fsage.record` wrote.

    Opening reads and checks the description only. Tables are read when they are asked for, and each row group is
    verified.
    """

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.path = Path(path)
        self._own = _fsage.Workload(path)

    @property
    def name(self) -> str:
        """The directory's name, without `.workload`."""
        return self.path.stem

    @property
    def events(self) -> int:
        """Calls recorded."""
        return self._own.events

    @property
    def meta(self) -> dict[str, Any]:
        """What the recording says of itself: tracer, host, command, file systems, coverage (`meta.json` in
        docs/formats.md)."""
        return loads(self._own.meta())

    def calls(self, columns: Union[str, Sequence[str]] = ()) -> Table:
        """A row for each call, in the order in which they began.

        Of the columns named, in the file's order, or of all. `t_ns` is when a call began, nanoseconds since the
        recording did; `dur_ns` is how
        long it took; paths are escaped (docs/formats.md has every column). A table of all columns takes about 160
        bytes a call.
        """
        return self._own.calls(names(columns))

    def names(self, columns: Union[str, Sequence[str]] = ()) -> Table:
        """The files and directories that were there when the recording began: path, kind, `size_bytes`, mode, times."""
        return self._own.names(names(columns))

    def schedule(self, columns: Union[str, Sequence[str]] = ()) -> Optional[Table]:
        """When threads had no processor and why; `None` where the tracer does not tell (strace)."""
        return self._own.schedule(names(columns))

    def __len__(self) -> int:
        return self.events

    def __repr__(self) -> str:
        return f"<fsage.Workload {self.name}: {self.events} calls>"
