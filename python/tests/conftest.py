"""What the tests share: a recording, systems, and the command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fsage

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def recording() -> Path:
    """The recording that `fsage quickstart` carries: more than 10,000 calls of a real program."""
    return REPOSITORY / "crates/cli/src/quickstart/recorded"


@pytest.fixture()
def workload(recording: Path) -> fsage.Workload:
    return fsage.Workload(recording)


@pytest.fixture()
def copied(recording: Path, tmp_path: Path) -> Path:
    """A recording of one's own, to be damaged."""
    return Path(shutil.copytree(recording, tmp_path / "own.workload"))
