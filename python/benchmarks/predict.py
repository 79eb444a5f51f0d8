"""How long a prediction takes from Python, against the command: `python benchmarks/predict.py WORKLOAD [SYSTEM…] [--rounds N]`.

The two take turns, in random order. Both read the recording, predict it on the same systems and make the same JSON of it, which is compared (where it comes from
apart).
Times are processor time of all threads (the command's with its start and its output; Python's of the call, in a process that has imported
`fsage`) and wall-clock time. A large recording: `cargo run --profile dist -p fsage-benchmarks --bin predict -- --write big.workload`.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import time
from collections.abc import Callable

import fsage


def timed(who: int, work: Callable[[], str]) -> tuple[float, float, str]:
    """Processor seconds, wall-clock seconds, and what came out."""

    def processor() -> float:
        usage = resource.getrusage(who)
        return usage.ru_utime + usage.ru_stime

    cpu, wall = processor(), time.monotonic()
    out = work()
    return processor() - cpu, time.monotonic() - wall, out


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("systems", nargs="*", help="paths of .system profiles (the bundled ones, where none are named)")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    systems = arguments.systems
    if not systems:
        # As files, which is what the command takes.
        systems = [f"{name}.system" for name in ("ext4", "xfs", "btrfs")]
        for system, path in zip(fsage.System.bundled(), systems):
            system.save(path, overwrite=True)
    command = [str(fsage.binary()), "predict", arguments.workload, *systems, "--min-coverage", "0", "--json"]

    def by_command() -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def by_python() -> str:
        return fsage.predict(arguments.workload, systems, min_coverage=0.0)._own.json()

    runs: dict[str, list[tuple[float, float]]] = {"command": [], "Python": []}
    rng = random.Random(1)
    for number in range(1, arguments.rounds + 1):
        both = [("command", resource.RUSAGE_CHILDREN, by_command), ("Python", resource.RUSAGE_SELF, by_python)]
        rng.shuffle(both)
        said = {}
        for name, who, work in both:
            cpu, wall, said[name] = timed(who, work)
            runs[name].append((cpu, wall))
        theirs, ours = (json.loads(said[name]) for name in ("command", "Python"))
        theirs.pop("run")  # Command line and time.
        assert json.dumps(theirs) == json.dumps(ours), "they do not say the same"
        c, p = runs["command"][-1], runs["Python"][-1]
        print(f"round {number}: command {c[0]:.3f} s of processor, {c[1]:.3f} s; Python {p[0]:.3f}, {p[1]:.3f}", flush=True)
    calls = fsage.Workload(arguments.workload).events
    print(f"{calls} calls on {len(systems)} systems, {arguments.rounds} rounds in turns; the same JSON to the byte each time (where it comes from apart)")
    for place, what in ((0, "processor time"), (1, "wall-clock time")):
        ratios = [p[place] / c[place] for p, c in zip(runs["Python"], runs["command"])]
        low, high = min(ratios), max(ratios)
        print(f"{what}: Python takes {statistics.median(ratios):.3f} times the command's (rounds: {low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
