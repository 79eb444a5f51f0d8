#!/usr/bin/env python3
"""Two thousand laboratory runs, in several ways: the same bytes each time, and what a task costs beyond its own work.

    python3 -m venv venv && venv/bin/pip install 'dask[distributed]' duckdb polars
    venv/bin/python validation/sweeps.py --program target/release/fsage

Prints what it measures, and ends with 1 where two ways differ. Who judges:
* bytes are compared by their BLAKE2 here, not by fsage;
* figures are read back by DuckDB and polars, and a sample of them compared with what `fsage bench --json`
  prints by itself;
* what a task costs without a sweep is the time of `xargs -P 2` with the same command lines, by the clock and in
  processor time; the latter says more where the machine has other things to do.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "fsage"))
import sweep as driver  # noqa: E402 - the file by itself: no package needs to be installed

SPEC = """format = "fsage.sweep/1"
run = ["bench", "smallfile", "ffs:{mode},size=64M@{drive}", "--files", "{files}", "--size", "{size}",
       "--seed", "{seed}"]
partition = ["drive"]
[axes]
mode = ["conventional", "noorder", "softdep", "journal=async", "journal=sync"]
drive = ["st32430n", "hp-c2247a", "dec-rz26", "nearline-7200"]
files = [10, 20, 40, 80, 160]
size = ["1K", "2K", "4K", "8K"]
seed = { from = 1, to = %d }
"""
# About a second each on today's machines: how many files make it so is found first.
LONG = """format = "fsage.sweep/1"
run = ["bench", "smallfile", "ffs:softdep,size=8G@nearline-7200", "--files", "{files}", "--seed", "1"]
[axes]
files = { from = %d, to = %d }
"""

failed = []


def say(text):
    print(text, flush=True)


def check(what, holds):
    say(f"    {'holds' if holds else 'DOES NOT HOLD'}: {what}")
    if not holds:
        failed.append(what)


def digest(folder):
    """Of everything but the journal, its lock, and the table of times."""
    hasher = hashlib.blake2b(digest_size=12)
    count = 0
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in ("journal", "lock", "timing.parquet"):
            data = path.read_bytes()
            hasher.update(f"{name} {len(data)}\n".encode())
            hasher.update(data)
            count += 1
    return f"{hasher.hexdigest()} of {count} files"


def sweep_json(program, spec, folder, *options):
    done = subprocess.run(
        [program, "sweep", spec, "-o", folder, "--json", *options], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def overhead(ran):
    return (ran["seconds"] * ran["jobs"] - ran["task_seconds"]) / ran["tasks"]


def commands(program, spec):
    listed = json.loads(
        subprocess.run([program, "sweep", spec, "--list", "--json"], stdout=subprocess.PIPE, check=True).stdout
    )
    return [task["arguments"] for task in listed["commands"]]


def plain(program, lines, place, jobs=2):
    """The same command lines without a sweep: seconds that they take with xargs, --json thrown away."""
    file = place / "lines"
    quoted = (" ".join(f"'{word}'" for word in [*line, "--json"]) for line in lines)
    file.write_text("".join(f"{line}\n" for line in quoted))
    with file.open() as text:
        arguments = ["xargs", "-P", str(jobs), "-L", "1", program]
        subprocess.run(arguments, stdin=text, stdout=subprocess.DEVNULL, check=True)


def in_turns(program, spec, lines, place):
    """xargs and the sweep in turns: medians of seconds by the clock and on processors, and the sweep's own account."""
    clock, processor, own = {"xargs": [], "sweep": []}, {"xargs": [], "sweep": []}, []

    def timed(name, run):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        found = run()
        clock[name].append(time.monotonic() - began)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor[name].append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
        return found

    numbers = f"1..{len(lines)}"
    for n in range(5):
        timed("xargs", lambda: plain(program, lines, place))
        folder = place / f"turn-{n}"
        options = (folder, "--tasks", numbers, "--jobs", "2")
        ran = timed("sweep", lambda options=options: sweep_json(program, spec, *options))["ran"]
        shutil.rmtree(folder)
        own.append((overhead(ran), ran["task_seconds"] / ran["tasks"]))
    median = {
        kind: {name: statistics.median(values) for name, values in of.items()}
        for kind, of in (("clock", clock), ("processor", processor))
    }
    for kind, words in (("clock", "s by the clock"), ("processor", "processor seconds")):
        a, b = median[kind]["xargs"], median[kind]["sweep"]
        say(
            f"    {len(lines)} tasks, {words}: xargs {a:.2f}, the sweep {b:.2f}: "
            f"{(b - a) / len(lines) * 1e3:+.2f} ms a task, {b / a - 1:+.2%}"
        )
    return statistics.median(o for o, _ in own), statistics.median(t for _, t in own), median["processor"]


def killed(program, spec, folder, times, lasting, generator):
    """Runs with kill -9 at random moments, until nothing is left to do."""
    kept = []
    for _ in range(times):
        process = subprocess.Popen(
            [program, "sweep", spec, "-o", folder, "--jobs", "2", "--json"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(generator.uniform(0.02, lasting / times))
        # Every other time its tasks are left to end with it, which they do.
        kill = os.killpg if generator.random() < 0.5 else os.kill
        kill(process.pid, signal.SIGKILL)
        process.wait()
        journal = folder / "journal"
        kept.append(max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0)
    return kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--seeds", type=int, default=5, help="400 runs each")
    parser.add_argument("--without-dask", action="store_true")
    given = parser.parse_args()
    generator = random.Random(given.seed)
    place = Path(tempfile.mkdtemp(prefix="fsage-sweeps-"))
    try:
        run(given, place, generator)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    say(f"\n{len(failed)} of the statements above do not hold" if failed else "\nall statements above hold")
    return 1 if failed else 0


def run(given, place, generator):
    program = given.program
    spec = place / "runs.toml"
    spec.write_text(SPEC % given.seeds)
    lines = commands(program, spec)
    say(f"{len(lines)} laboratory runs; {os.cpu_count()} processors, seed {given.seed}; load {os.getloadavg()[0]:.1f}")

    say("\none at a time")
    alone = sweep_json(program, spec, place / "alone", "--jobs", "1")
    first = digest(place / "alone")
    say(
        f"    {alone['ran']['seconds']:.1f} s, {alone['ran']['task_seconds'] / len(lines) * 1e3:.1f} ms a task; {first}"
    )
    check(f"all {len(lines)} have a result", alone["ended"] == len(lines) and alone["failed"] == 0)

    say("\ntwo local workers")
    two = sweep_json(program, spec, place / "two", "--jobs", "2")
    say(f"    {two['ran']['seconds']:.1f} s; {digest(place / 'two')}")
    check("the same bytes as one at a time", digest(place / "two") == first)

    say("\nkilled at ten random moments (kill -9), then run to the end")
    kept = killed(program, spec, place / "killed", 10, alone["ran"]["seconds"] / 2, generator)
    say(f"    results kept after each kill: {', '.join(map(str, kept))}")
    sweep_json(program, spec, place / "killed", "--jobs", "2")
    journal = (place / "killed" / "journal").read_bytes().split(b"\n")[1:-1]
    numbers = [json.loads(line.split(b" ", 1)[1])["task"] for line in journal]
    check("the same bytes as one at a time", digest(place / "killed") == first)
    check("no task was kept twice", len(numbers) == len(set(numbers)) == len(lines))

    parts(program, spec, place, first, len(lines))
    if not given.without_dask:
        cluster(program, spec, place, first, len(lines))
    read_back(program, place / "two", lines, generator)
    costs(program, spec, lines, place, two)


def parts(program, spec, place, first, tasks):
    say("\nin four parts by number, as make or Slurm would run them, then collected")
    made = []
    for n in range(4):
        numbers = f"{n * tasks // 4 + 1}..{(n + 1) * tasks // 4}"
        made.append(place / f"part-{n}")
        sweep_json(program, spec, made[-1], "--tasks", numbers)
    sweep_json(program, spec, place / "collected", "--collect", *map(str, made))
    check("the same bytes as one at a time", digest(place / "collected") == first)


def cluster(program, spec, place, first, tasks):
    from distributed import Client, LocalCluster

    say("\na Dask cluster of two workers")
    os.environ["FSAGE"] = program
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        Client(local) as client,
    ):
        client.wait_for_workers(2)
        began = time.monotonic()
        driver.sweep(spec, output=place / "dask", dask=client)
        took = time.monotonic() - began
        say(f"    {took:.1f} s; {digest(place / 'dask')}")
        check("the same bytes as one at a time", digest(place / "dask") == first)
        timing = seconds(place / "dask")
        cost = (took * 2 - sum(timing)) / tasks
        say(
            f"    a task took {sum(timing) / tasks * 1e3:.1f} ms, and {cost * 1e3:.1f} ms of a worker beyond that, "
            "start and end of it all included"
        )

        say("\nthe same, and a worker is killed (kill -9) after a third of the time")
        victim = next(iter(local.workers.values())).process.pid
        import threading

        timer = threading.Timer(took / 3, os.kill, (victim, signal.SIGKILL))
        timer.start()
        driver.sweep(spec, output=place / "lost", dask=client)
        timer.join()
        check("the same bytes as one at a time", digest(place / "lost") == first)

        say("\nwhat the scheduler costs by itself")
        count = 3000
        began = time.monotonic()
        client.gather([client.submit(int, n, pure=False) for n in range(count)])
        future = (time.monotonic() - began) / count
        say(f"    {count} futures that do nothing: {future * 1e3:.2f} ms each")
        globals()["future_s"] = future


def seconds(folder):
    import duckdb

    return [row[0] for row in duckdb.sql(f"SELECT seconds FROM '{folder}/timing.parquet'").fetchall()]


def read_back(program, folder, lines, generator):
    import duckdb
    import polars

    say("\nread by others")
    pattern = f"{folder}/results/**/*.parquet"
    rows, drives = duckdb.sql(
        f"SELECT count(*), count(DISTINCT drive) FROM read_parquet('{pattern}', hive_partitioning = true)"
    ).fetchall()[0]
    frame = polars.read_parquet(pattern, hive_partitioning=True)
    say(f"    DuckDB: {rows} rows, {drives} drives; polars: {frame.height} rows, {frame['drive'].n_unique()} drives")
    check(
        "both read as many rows, and the partition's column",
        rows == frame.height and drives == frame["drive"].n_unique() == 4,
    )
    same = True
    for task in generator.sample(range(1, len(lines) + 1), 20):
        alone = json.loads(
            subprocess.run([program, *lines[task - 1], "--json"], stdout=subprocess.PIPE, check=True).stdout
        )
        expected = {phase["phase"]: phase["rate"]["median"] for phase in alone["targets"][0]["points"][0]["phases"]}
        found = frame.filter((polars.col("task") == task) & (polars.col("metric") == "rate"))
        same &= dict(zip(found["part"], found["value"], strict=True)) == expected
    check("20 tasks drawn at random have the rates that `fsage bench --json` prints by itself", same)


def costs(program, spec, lines, place, two):
    tasks = len(lines)
    say("\nwhat a task costs beyond its own work, two at a time (medians of five turns)")
    own, _, _ = in_turns(program, spec, lines[:200], place)
    say(
        f"    by its own account: {own * 1e3:.2f} ms a task, "
        f"and {overhead(two['ran']) * 1e3:.2f} ms in the run of all tasks"
    )
    shutil.copytree(place / "two", place / "again")
    began = time.monotonic()
    sweep_json(program, spec, place / "again", "--report")
    report = time.monotonic() - began
    shutil.copytree(place / "again", place / "stored")
    sweep_json(program, spec, place / "empty", "--tasks", "1")
    began = time.monotonic()
    sweep_json(program, spec, place / "stored", "--collect", str(place / "empty"))
    stored = time.monotonic() - began
    size = sum(path.stat().st_size for path in (place / "stored" / "results").rglob("*.parquet"))
    journal = (place / "stored" / "journal").stat().st_size
    say(
        f"    the data set: {max(stored - report, 0) / tasks * 1e3:.3f} ms, {size / tasks:.0f} bytes "
        f"and {journal / tasks:.0f} of journal a task"
    )

    say("\ntasks of about a second")
    long = place / "long.toml"
    files = 2000
    for _ in range(6):
        long.write_text(LONG % (files, files))
        shutil.rmtree(place / "probe", ignore_errors=True)
        took = sweep_json(program, long, place / "probe", "--jobs", "1")["ran"]["task_seconds"]
        if took > 0.9:
            break
        files = int(files * min(4, 1.05 / took))
    long.write_text(LONG % (files, files + 7))
    own, mean, processor = in_turns(program, long, commands(program, long), place)
    share = processor["sweep"] / processor["xargs"] - 1
    say(f"    by its own account: {own * 1e3:.1f} ms a task of {mean:.2f} s, {own / mean:.2%}")
    check(
        "below 5 % of tasks of about a second, by its own account and in processor time",
        own / mean < 0.05 and share < 0.05,
    )

    if "future_s" in globals():
        limit(future_s, max(stored - report, 0) / tasks)  # noqa: F821 - set by cluster()


def limit(future, storage):
    say("\na thousand workers with tasks of a second, in batches of four seconds")
    arriving = 1000 / 4
    say(f"    {arriving:.0f} batches a second arrive; the scheduler has room for {1 / future:.0f}")
    say(f"    1000 results a second arrive; the data set has room for {1 / max(storage, 1e-9):.0f}")
    say(f"    so batches of {1000 * future:.1f} s and more keep the scheduler below what it can do")


if __name__ == "__main__":
    sys.exit(main())
