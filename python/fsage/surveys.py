"""Surveys of layout: `survey`, `Survey`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional, Union

from . import _fsage
from ._fsage import Table
from ._values import loads, table

__all__ = ["Survey", "survey"]


class Survey:
    """How a file system has placed its files and what is left of its free space, at one moment.

    `document` has everything (schema of `fsage layout`, docs/formats.md). A figure that could not be had is `None`,
    and `why_not` says why.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def _known(self, part: str) -> dict[str, Any]:
        found: dict[str, Any] = self.document[part].get("known", {})
        return found

    @property
    def why_not(self) -> dict[str, str]:
        """Which parts (`files`, `free`) could not be had, and why."""
        parts = {part: self.document[part].get("unavailable") for part in ("files", "free")}
        return {part: why for part, why in parts.items() if why is not None}

    @property
    def layout_score(self) -> Optional[float]:
        """The aggregate layout score, 0 to 1: the share of blocks that lie right after the one before (Smith and
        Seltzer, 1996)."""
        return self._known("files").get("layout_score")

    @property
    def source(self) -> dict[str, Any]:
        """What was surveyed, how and when, its size and block, what addresses are."""
        found: dict[str, Any] = self.document["source"]
        return found

    @property
    def walked(self) -> dict[str, Any]:
        """Files, directories and others met; what could not be read."""
        found: dict[str, Any] = self.document["walked"]
        return found

    @property
    def files(self) -> dict[str, Any]:
        """Every figure of the files; empty where they could not be had."""
        return self._known("files")

    @property
    def free(self) -> dict[str, Any]:
        """Every figure of the free space; empty where it could not be had."""
        return self._known("free")

    @property
    def by_size(self) -> Table:
        """Files by their length in powers of two: how many, blocks, extents, layout score."""
        return table(self.files.get("by_size", []))

    @property
    def worst(self) -> Table:
        """The files with the most breaks."""
        return table(self.files.get("worst", []))

    def __repr__(self) -> str:
        score = "not known" if self.layout_score is None else f"{self.layout_score:.4f}"
        return f"<fsage.Survey of {self.source['target']}: {self.walked['files']} files, layout score {score}>"


def survey(
    target: Union[str, os.PathLike[str]], *, hot_days: float = 30.0, worst: int = 20
) -> Survey:
    """Surveys a mounted directory tree or an unmounted ext2/3/4 image, or reads a survey that `fsage layout -o` saved
    (`.json`), or a snapshot that `fsage snapshot --blocks` took: its layout, without free space.

    Nothing is changed. As root, more figures are available. (`Lab.layout` surveys a laboratory.)

    Args:
        target: a directory, an image, the file of a survey, or a snapshot with block lists.
        hot_days: files modified in the last so many days count as hot.
        worst: how many of the files with the most breaks are listed.
    """
    saved = Path(target).suffix == ".json"
    return Survey(loads(_fsage.survey(target, saved, hot_days, worst)))
