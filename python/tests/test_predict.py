"""Predictions in the process are the command's own, to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import fsage
from conftest import REPOSITORY

PROFILES = [REPOSITORY / f"profiles/{name}.system" for name in ("ext4", "xfs", "btrfs")]


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [fsage.binary(), *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, []),
        (
            {"cache": "64M", "cache_policy": "sieve", "set": {"rm": "50us"}, "initial": "warm", "pace": "recorded", "seed": 7},
            ["--cache", "64M", "--cache-policy", "sieve", "--set", "rm=50us", "--initial", "warm", "--pace", "recorded",
             "--seed", "7"],
        ),
        ({"cache_sizes": ["1G", "64M"], "processors": 3}, ["--cache-sizes", "64M,1G", "--processors", "3"]),
    ],
)
def test_the_command_says_the_same(recording: Path, options: dict[str, object], flags: list[str]) -> None:
    done = command("predict", recording, *PROFILES, *flags, "--json")
    assert done.returncode == 0, done.stderr
    ours = fsage.predict(recording, PROFILES, **options)  # type: ignore[arg-type]
    theirs = json.loads(done.stdout)
    assert theirs.pop("run")["command"].startswith("fsage predict"), "where it comes from: the only difference"
    # Text, so that order and every digit count.
    assert json.dumps(ours.document) == json.dumps(theirs)


def test_the_explanation_is_the_commands(recording: Path) -> None:
    names = ["ext4 (bundled)", "btrfs (bundled)"]
    done = command("predict", recording, *PROFILES, "--explain", *names, "--json")
    ours = fsage.predict(recording, PROFILES).explain(*names)
    assert ours.document == json.loads(done.stdout)["explanation"]
    parts = ours.by_entry.to_dicts()
    # What the parts say is what the totals say: nothing is left out.
    assert sum(p["difference_ns"] for p in parts) == pytest.approx(ours.difference_ns, rel=1e-6)
    same = fsage.explain(recording, PROFILES[0], PROFILES[2])
    assert same.document == ours.document


def test_bundled_profiles_are_the_files(workload: fsage.Workload) -> None:
    by_name = fsage.predict(workload, ["ext4", "xfs", "btrfs"])
    by_path = fsage.predict(workload, PROFILES)
    assert by_name.document == by_path.document
    assert fsage.System("bundled:xfs").profile == fsage.System("xfs").profile


def test_tables_are_parts_of_the_result(workload: fsage.Workload) -> None:
    answer = fsage.predict(workload, ["ext4", "xfs"], cache_sizes=["64M"])
    ranking = answer.ranking.to_dicts()
    assert [row["system"] for row in ranking] == [r["system"] for r in answer.document["ranking"]["systems"]]
    assert ranking[0]["system"] == answer.fastest
    totals = {s["system"]: s["total_ns"] for s in answer.document["prediction"]["systems"]}
    by_op = answer.by_op.to_dicts()
    for system, total in totals.items():
        assert sum(row["ns"] for row in by_op if row["system"] == system) == pytest.approx(total, rel=1e-6)
    assert set(answer.cache.column("system")) == set(totals)
    assert len(answer.cache_sizes) > 0 and len(answer.pairs) == 1
    assert answer.run_time_unknown and len(answer.run_time) == 0


def test_priced_calls_add_up_to_the_total(workload: fsage.Workload) -> None:
    answer = fsage.predict(workload, "xfs", cache="32M")
    calls = fsage.priced_calls(workload, "xfs", cache="32M")
    assert sum(calls.column("predicted_ns")) == pytest.approx(answer.ranking.column("total_ns")[0], rel=1e-9)
    assert set(calls.column_names) == {"seq", "op", "recorded_ns", "predicted_ns", "stall_ns"}
    recorded = dict(zip(workload.calls(["seq"]).column("seq"), workload.calls(["dur_ns"]).column("dur_ns")))
    assert all(recorded[s] == ns for s, ns in zip(calls.column("seq"), calls.column("recorded_ns")))


def test_a_what_if_is_a_system_of_its_own(workload: fsage.Workload) -> None:
    system = fsage.System("ext4")
    slower = system.what_if({"rm": "1s"}).named("slow")
    answer = fsage.predict(workload, [system, slower])
    assert answer.fastest == system.name
    assert fsage.predict(workload, system, set={"rm": "1s"}).ranking.column("total_ns") == [
        answer.ranking.column("total_ns")[1]
    ]


def test_arguments_that_make_no_sense_are_usage_errors(workload: fsage.Workload) -> None:
    for wrong in (
        {"cache": "much"},
        {"cache_policy": "fifo"},
        {"set": {"no such entry": 1}},
        {"initial": "tepid"},
        {"pace": "slow"},
        {"min_coverage": 90},
        {"cache_sizes": [1]},
    ):
        with pytest.raises(fsage.UsageError):
            fsage.predict(workload, "ext4", **wrong)  # type: ignore[arg-type]
    with pytest.raises(fsage.UsageError, match="two systems are called"):
        fsage.predict(workload, [fsage.System("ext4"), fsage.System("ext4")])
    with pytest.raises(fsage.UsageError):
        fsage.predict(workload, [])


def test_other_threads_run_meanwhile(workload: fsage.Workload) -> None:
    """The lock is given back: a thread that waits for nothing gets on while a prediction runs."""
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    before = counted
    fsage.predict(workload, ["ext4", "xfs", "btrfs"], cache_sizes=["1M", "64M", "1G"])
    during = counted - before
    done.set()
    counter.join()
    # With the lock held, it would have had no turn between the two readings but at their ends.
    assert during > 100


def test_ctrl_c_ends_it(recording: Path) -> None:
    """A signal while it works raises KeyboardInterrupt, and the work has ended when it does."""
    script = (
        "import os, signal, sys, threading, fsage\n"
        "w = fsage.Workload(sys.argv[1])\n"
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    while True: fsage.predict(w, ['ext4', 'xfs', 'btrfs'], cache_sizes=[4096 << n for n in range(18)])\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', fsage.predict(w, 'ext4').fastest)\n"
    )
    done = subprocess.run(
        [os.sys.executable, "-c", script, str(recording)],  # type: ignore[attr-defined]
        capture_output=True, text=True, timeout=120, check=False,
    )
    assert done.stdout.strip() == "interrupted ext4 (bundled)", done.stderr


def test_systems_are_explained_by_the_names_they_were_asked_for_by(workload: fsage.Workload) -> None:
    answer = fsage.predict(workload, ["ext4", "xfs"])
    why = answer.explain("ext4", "xfs")
    assert (why.a, why.b) == ("ext4 (bundled)", "xfs (bundled)")
    with pytest.raises(fsage.UsageError, match="there are ext4"):
        answer.explain("ext4", "ntfs")


@pytest.mark.parametrize(
    "wrong",
    [{"cache": -1}, {"cache": 1.5}, {"cache": 2**70}, {"seed": -1}, {"processors": 0}, {"set": ["rm"]}, {"cache_sizes": [True]}],
)
def test_numbers_that_mean_nothing_are_refused(workload: fsage.Workload, wrong: dict[str, Any]) -> None:
    with pytest.raises(fsage.UsageError):
        fsage.predict(workload, "ext4", **wrong)


def test_a_column_may_be_named_alone(workload: fsage.Workload) -> None:
    assert workload.calls("op").column_names == ["op"]
