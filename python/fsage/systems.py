"""System profiles: `System`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from . import _fsage
from ._fsage import Table
from ._values import Duration, duration_ns, loads
from .errors import UsageError

__all__ = ["System"]


class System:
    """What one file system on one machine costs: the file `NAME.system` that `fsage measure` or `fsage.measure` wrote.

    ``System("ext4")``, ``"xfs"`` and ``"btrfs"`` are profiles that are part of fsage, unless there is a file of that
    name; ``"bundled:ext4"`` is one whatever files there are. Anything else is a path. A system never changes: what-ifs
    make new ones.
    """

    def __init__(self, source: Union[str, os.PathLike[str], _fsage.System]) -> None:
        self._own = source if isinstance(source, _fsage.System) else _fsage.System.load(source)

    @staticmethod
    def bundled() -> list[System]:
        """The profiles that are part of fsage, of scratch images on one machine; `environment` says which."""
        return [System(f"bundled:{name}") for name in _fsage.System.bundled_names()]

    @staticmethod
    def parse(text: str) -> System:
        """A system from the text of a `.system` file."""
        return System(_fsage.System.parse(text))

    @property
    def name(self) -> str:
        """The name used in tables."""
        return self._own.name

    @property
    def profile(self) -> dict[str, Any]:
        """Everything in it, field by field as in docs/formats.md."""
        return loads(self._own.json())

    @property
    def parameters(self) -> dict[str, Any]:
        """Sizes of caches, thresholds and rates of write-back."""
        found: dict[str, Any] = self.profile["parameters"]
        return found

    @property
    def environment(self) -> dict[str, Any]:
        """Where it was measured: kernel, processor, device, options."""
        found: dict[str, Any] = self.profile["environment"]
        return found

    @property
    def entries(self) -> Table:
        """The vector: a row for each elementary operation, with `mean_ns`, its 95 % interval `low_ns` to `high_ns`,
        and `rounds_ns`."""
        return self._own.entries()

    def named(self, name: str) -> System:
        """The same under another name."""
        return System(self._own.renamed(name))

    def what_if(self, costs: Mapping[str, Duration]) -> System:
        """The same with other costs: ``{"rm": "50us"}``. The first point of a curve moves the whole curve."""
        own = self._own
        for entry, cost in costs.items():
            own = own.with_cost(entry, duration_ns(cost))
        return System(own)

    def text(self) -> str:
        """As the text of a `.system` file (TOML)."""
        return self._own.text()

    def save(self, path: Union[str, os.PathLike[str]], *, overwrite: bool = False) -> None:
        """Writes a `.system` file, whole or not at all. One that is there stays, unless `overwrite`."""
        if not overwrite and Path(path).exists():
            raise UsageError(f"{path}: is already there and is not overwritten; say overwrite=True or name another")
        self._own.save(path)

    def __repr__(self) -> str:
        return f"<fsage.System {self.name}: {len(self.entries)} entries>"
