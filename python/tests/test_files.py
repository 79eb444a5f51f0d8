"""Workloads, systems and plans: what is read is right, what is damaged is refused, what is there stays."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union

import pytest

import fsage
from conftest import REPOSITORY


def test_a_workload_says_what_its_file_says(recording: Path, workload: fsage.Workload) -> None:
    meta = json.loads((recording / "meta.json").read_text())
    assert workload.events == len(workload) == meta["events"]
    assert workload.meta["host"] == meta["host"]
    seq = workload.calls(["seq"]).column("seq")
    assert seq == sorted(seq) and len(seq) == meta["events"]
    assert len(workload.names()) == meta["snapshot"]["entries"] if "entries" in meta["snapshot"] else True
    assert workload.schedule() is None


def test_a_damaged_workload_is_refused_with_its_place(copied: Path) -> None:
    trace = copied / "trace.parquet"
    damaged = bytearray(trace.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    trace.write_bytes(damaged)
    with pytest.raises(fsage.InputError, match="trace.parquet.*row group"):
        fsage.Workload(copied).calls()
    with pytest.raises(fsage.InputError, match="trace.parquet"):
        fsage.predict(copied, "ext4")
    (copied / "meta.json").write_text("{}")
    with pytest.raises(fsage.InputError, match="meta.json"):
        fsage.Workload(copied)
    with pytest.raises(fsage.InputError, match="none.workload"):
        fsage.Workload("none.workload")


def test_a_system_is_written_and_read_back(tmp_path: Path) -> None:
    ext4 = fsage.System("ext4")
    path = tmp_path / "a.system"
    ext4.named("mine").save(path)
    mine = fsage.System(path)
    assert mine.name == "mine" and mine.profile["entries"] == ext4.profile["entries"]
    with pytest.raises(fsage.UsageError, match="not overwritten"):
        ext4.save(path)
    ext4.save(path, overwrite=True)
    assert fsage.System(path).text() == (REPOSITORY / "profiles/ext4.system").read_text()
    entries = {row["entry"]: row for row in ext4.entries.to_dicts()}
    assert entries["rmdir"]["mean_ns"] == ext4.profile["entries"]["rmdir"]["mean_ns"]
    assert [s.name for s in fsage.System.bundled()] == ["ext4 (bundled)", "xfs (bundled)", "btrfs (bundled)"]


def test_a_system_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fsage.InputError, match="ext4, xfs, btrfs"):
        fsage.System("ntfs")
    with pytest.raises(fsage.UsageError, match="name one"):
        fsage.System("bundled")
    (tmp_path / "x.system").write_text("format_version = 1\nname = 3\n")
    with pytest.raises(fsage.InputError, match=r"x.system:2"):
        fsage.System(tmp_path / "x.system")
    with pytest.raises(fsage.InputError):
        fsage.System(tmp_path / "none.system")
    with pytest.raises(fsage.UsageError):
        fsage.System("ext4").what_if({"rm": "-1s"})


def growing(files: int) -> Iterator[fsage.Operation]:
    """Files of 8 KiB, one an hour, every third removed a day later."""
    hour = fsage.DAY_NS // 24
    yield fsage.Operation(0, "mkdir", 1, name="d")
    for n in range(files):
        yield fsage.Operation(n * hour, "create", n + 2, dir=1, size_bytes=8192)
        if n >= 24 and n % 3 == 0:
            yield fsage.Operation(n * hour, "delete", n - 24 + 2)


def test_a_plan_of_a_generator_is_what_the_generator_said(tmp_path: Path) -> None:
    path = tmp_path / "p.aging"
    plan = fsage.write_plan(path, growing(100), capacity="64M", name="growing", parameters={"files": 100}, seed=5)
    wanted = list(growing(100))
    rows = plan.operations().to_dicts()
    assert [(r["t_ns"], r["op"], r["file_id"], r["size_bytes"]) for r in rows] == [
        (o.t_ns, o.kind, o.node, o.size_bytes) for o in wanted
    ]
    plan.verify()
    meta = plan.meta
    assert meta["source"] == {"kind": "python", "name": "growing", "description": "", "inputs": [], "parameters": {"files": 100}}
    assert (meta["seed"], meta["days"], meta["capacity_bytes"]) == (5, 5, 64 << 20)
    assert plan.utilisation.column("files")[-1] == meta["counts"]["files_at_end"]
    with pytest.raises(fsage.UsageError, match="not overwritten"):
        fsage.write_plan(path, growing(1), capacity="64M")


def test_a_plan_that_contradicts_itself_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "p.aging"
    with pytest.raises(fsage.Error, match="node 9"):
        fsage.write_plan(path, [fsage.Operation(0, "delete", 9)], capacity="64M")
    with pytest.raises(fsage.UsageError, match="no operation"):
        fsage.write_plan(path, [fsage.Operation(0, "shred", 1)], capacity="64M")

    def breaks() -> Iterator[fsage.Operation]:
        yield fsage.Operation(0, "create", 1, size_bytes=1)
        raise LookupError("of the generator")

    with pytest.raises(LookupError, match="of the generator"):
        fsage.write_plan(path, breaks(), capacity="64M")
    assert list(tmp_path.iterdir()) == []


def test_errors_are_one_hierarchy() -> None:
    for error in (fsage.CheckError, fsage.UsageError, fsage.HostError, fsage.InputError, fsage.Interrupted):
        assert issubclass(error, fsage.Error)
    assert issubclass(fsage.CallError, (fsage.HostError, OSError)) and issubclass(fsage.UsageError, ValueError)
    again = pickle.loads(pickle.dumps(fsage.CallError(2, "ENOENT: open a")))
    assert (again.errno, str(again)) == (2, "ENOENT: open a")


@pytest.mark.parametrize("name", ["a/b", "..", "", "a\0b", "n" * 256, b"\xff/"])
def test_a_plan_with_a_name_that_no_plan_may_have_is_not_written(tmp_path: Path, name: Union[str, bytes]) -> None:
    """They were written, and refused when the plan was read."""
    with pytest.raises(fsage.InputError, match="operation 0"):
        fsage.write_plan(tmp_path / "x.aging", [fsage.Operation(0, "create", 1, name=name)], capacity="1M")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_operation_is_refused(tmp_path: Path) -> None:
    operations: list[Any] = [7]
    with pytest.raises(fsage.UsageError, match="no fsage.Operation"):
        fsage.write_plan(tmp_path / "x.aging", operations, capacity="1M")
    with pytest.raises(fsage.UsageError, match="none can be"):
        fsage.write_plan(tmp_path / "x.aging", [fsage.Operation(-1, "create", 1)], capacity="1M")
    assert list(tmp_path.iterdir()) == []
