"""What runs as a process: results, exit codes as exceptions, and signals that are passed on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fsage
from fsage import commands


def test_the_binary_is_of_the_modules_version() -> None:
    done = fsage.run(["--version"])
    assert done.returncode == 0 and done.stdout.split() == ["fsage", fsage.__version__]


def test_measuring_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.system"
    path.write_text("mine")
    with pytest.raises(fsage.UsageError, match="not overwritten"):
        fsage.measure("ffs:size=32M", path)
    assert path.read_text() == "mine"
    with pytest.raises(fsage.UsageError, match="directory"):
        fsage.measure("ffs:size=32M", tmp_path / "none" / "x.system")


def test_exit_codes_are_exceptions() -> None:
    for arguments, error in (
        (["predict", "none.workload", "none.system"], fsage.InputError),
        (["layout", "--compare", "a"], fsage.UsageError),
        (["reproduce", "none"], fsage.UsageError),
    ):
        with pytest.raises(error) as caught:
            commands._result(arguments)
        assert type(caught.value) is error and "fsage:" not in str(caught.value) and str(caught.value)


def test_a_check_that_fails_is_one_in_the_process_and_as_a_command(copied: Path) -> None:
    """A recording that covers less than is asked for."""
    meta = json.loads((copied / "meta.json").read_text())
    del meta["meta_crc32c"]  # Of the text as it was.
    (copied / "meta.json").write_text(json.dumps({**meta, "coverage_share": 0.5}))
    profile = Path(__file__).resolve().parents[2] / "profiles/ext4.system"
    with pytest.raises(fsage.CheckError, match="50.0 %") as theirs:
        commands._result(["predict", copied, profile])
    with pytest.raises(fsage.CheckError, match="50.0 %") as ours:
        fsage.predict(copied, "ext4")
    assert str(ours.value) == str(theirs.value)
    assert fsage.predict(copied, "ext4", min_coverage=0.4).fastest == "ext4 (bundled)"


def test_experiments_run(tmp_path: Path) -> None:
    keys = fsage.experiments().column("key")
    assert "alloc96/aggregate" in keys
    with pytest.raises(fsage.UsageError, match="no-such"):
        fsage.reproduce("no-such/experiment")


def test_a_recording_of_a_command_that_fails_is_there(tmp_path: Path) -> None:
    if not any(os.access(os.path.join(p, "strace"), os.X_OK) for p in os.environ["PATH"].split(":")):
        pytest.skip("strace is not installed")
    with pytest.raises(fsage.CheckError, match="ended with 3"):
        fsage.record(["sh", "-c", "echo a > a; exit 3"], tmp_path / "w.workload", using="strace", cwd=tmp_path)
    assert fsage.Workload(tmp_path / "w.workload").events > 0
    with pytest.raises(fsage.Error, match="overwrite"):
        fsage.record(["true"], tmp_path / "w.workload", using="strace", cwd=tmp_path)
    again = fsage.record(["sh", "-c", "echo a > b"], tmp_path / "w.workload", using="strace", cwd=tmp_path, overwrite=True)
    assert (again.name, "open" in again.calls(["op"]).column("op")) == ("w", True)


def test_ctrl_c_is_passed_on_and_nothing_stays(tmp_path: Path) -> None:
    """The command hears it once, removes what it made in its target, and Python goes on with KeyboardInterrupt."""
    script = (
        "import os, signal, sys, threading, time, fsage\n"
        "target = sys.argv[1]\n"
        "def later():\n"
        "    while not os.listdir(target): time.sleep(0.02)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=later, daemon=True).start()\n"
        "try:\n"
        "    fsage.measure(target, budget='600s', full=True)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', os.listdir(target))\n"
    )
    target = tmp_path / "target"
    target.mkdir()
    done = subprocess.run([sys.executable, "-c", script, str(target)], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "interrupted []", (done.stdout, done.stderr)
    assert done.returncode == 0


def test_parts_that_are_not_there_are_named() -> None:
    result = commands.Result({"schema": "x/1", "rows": [{"a": 1}, {"a": 2}], "one": {"b": 3}})
    assert result.table("rows").column("a") == [1, 2] and result.table("one").to_dicts() == [{"b": 3}]
    assert result.part("rows.1.a") == 2
    with pytest.raises(fsage.UsageError, match="there is schema, rows, one"):
        result.part("none")
    with pytest.raises(fsage.UsageError, match="2 elements"):
        result.part("rows.2")


def test_a_workload_is_replayed_on_a_target(tmp_path: Path) -> None:
    """It named the target as no command takes it."""
    text = "1 1700000000.1 mkdir(\"/d\", 0755) = 0 <0.00001>\n1 1700000000.2 stat(\"/d\", {st_mode=S_IFDIR|0755}) = 0 <0.00001>\n"
    (tmp_path / "a.strace").write_text(text)
    commands._result(["import", tmp_path / "a.strace", "-o", tmp_path / "a.workload"])
    found = fsage.replay(tmp_path / "a.workload", "ffs:size=16M")
    assert (found.schema, found.document["calls"]) == ("fsage.replay/1", 2)


def test_one_word_is_no_list_of_arguments(tmp_path: Path) -> None:
    with pytest.raises(fsage.UsageError, match="list of arguments"):
        fsage.run("inspect")
    with pytest.raises(fsage.UsageError, match="program and its arguments"):
        fsage.record("true", tmp_path / "w.workload")
    with pytest.raises(fsage.UsageError, match="NUL"):
        fsage.run(["inspect", "a\0b"])
