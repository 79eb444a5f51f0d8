"""Sweeps from Python: one command for every combination of values, here or on a Dask cluster (docs/sweeps.md).

    import fsage

    done = fsage.sweep("modes.toml")                                 # processes of this machine
    done = fsage.sweep("modes.toml", dask="tcp://10.0.0.1:8786")     # a cluster, or a dask.distributed.Client
    done.to_polars()                                                 # the figures: a row each

This is plain Python around the command ``fsage sweep``, which lists the tasks, runs them and keeps what becomes of
them. Dask carries numbers of tasks to workers and journals back, so the data set is the same byte for byte wherever
the tasks ran. What tasks read is sent to each worker once. Tasks travel in batches of a few seconds. A worker that is
lost costs the batch it was running. A client that is killed costs what it had not been sent yet: started again, it
goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import io
import json
import os
import posixpath
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional, Union

try:
    from .commands import binary as _binary
    from .errors import CheckError, Error, HostError, InputError, Interrupted, UsageError
except ImportError:  # This file by itself, from a checkout.

    class Error(Exception):  # type: ignore[no-redef]
        """Anything that fsage refuses or cannot do."""

    class CheckError(Error):  # type: ignore[no-redef]
        """A comparison or check failed."""

    class UsageError(Error, ValueError):  # type: ignore[no-redef]
        """What was asked for cannot be."""

    class HostError(Error):  # type: ignore[no-redef]
        """The machine refuses or lacks something."""

    class InputError(Error):  # type: ignore[no-redef]
        """An input is not what it should be."""

    class Interrupted(Error):  # type: ignore[no-redef]
        """A signal asked to stop."""

    def _binary() -> Path:
        found = os.environ.get("FSAGE") or shutil.which("fsage")
        if not found:
            raise HostError("the command fsage is not installed; name it in the environment as FSAGE")
        return Path(found)


__all__ = ["Sweep", "sweep"]

_Path = Union[str, "os.PathLike[str]"]

#: Batches in flight for each thread of the cluster: one runs while the next one travels.
_IN_FLIGHT = 2
#: How often what has come back is taken into the data set at most, seconds; and at most in one part of so many of the
#: time.
_COLLECT_EVERY_S = 30.0
_COLLECT_ONE_IN = 10


class Sweep:
    """A sweep that has been run.

    `folder` holds the data set (docs/formats.md), `document` is what ``fsage sweep --json`` prints: `tasks`, `ended`,
    `failed`, `failures`, `report`.
    """

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.folder = folder
        self.document = document

    @property
    def failed(self) -> int:
        """How many tasks have no result; `document["failures"]` has their messages."""
        return int(self.document["failed"])

    @property
    def figures(self) -> str:
        """The figures' files, as polars and DuckDB take them: a pattern."""
        return str(self.folder / "results" / "**" / "*.parquet")

    def to_polars(self) -> Any:
        """The figures as a polars frame: a row each, with the task's parameters."""
        polars: Any = importlib.import_module("polars")
        return polars.read_parquet(self.figures, hive_partitioning=True)

    def __repr__(self) -> str:
        ended, tasks = self.document["ended"], self.document["tasks"]
        return f"<fsage.Sweep {self.folder}: {ended} of {tasks} tasks, {self.failed} failed>"


def sweep(
    spec: Union[_Path, Mapping[str, Any]],
    *,
    output: Optional[_Path] = None,
    dask: Any = None,
    jobs: Optional[int] = None,
    retry_failed: bool = False,
    batch_seconds: float = 4.0,
    metric: Optional[str] = None,
    part: Optional[str] = None,
    html: Optional[_Path] = None,
    program: Optional[_Path] = None,
    program_on_workers: Optional[str] = None,
) -> Sweep:
    """Runs a sweep, or goes on with it, and returns it with its report.

    `spec`: the sweep's file, or what is in it as a dictionary; then `output` is needed, and the file is
    written beside it.
    `output`: the folder (by default ``NAME.sweep`` in the working directory).
    `dask`: a `dask.distributed.Client`, or a scheduler's address; without it, `jobs` processes at a time of
    this machine.
    `batch_seconds`: how long the tasks of a batch take together on a worker, about.
    `metric`, `part`, `html`: what the report is about, and a file for it.
    `program`: the command fsage. It is sent to the workers, unless `program_on_workers` says where they have the same.

    Tasks that fail are no exception: `Sweep.failed` counts them. Raises `UsageError`, `InputError` or
    `HostError` where the sweep itself cannot be.
    """
    command = Path(os.fspath(program)) if program is not None else _binary()
    file, folder = _places(spec, output)
    shown: list[str] = []
    for option, value in (("--metric", metric), ("--part", part), ("--html", html)):
        if value is not None:
            shown += [option, os.fspath(value)]
    again = ["--retry-failed"] if retry_failed else []
    base = ["sweep", str(file), "-o", str(folder)]
    if dask is None:
        at_a_time = [] if jobs is None else ["--jobs", str(jobs)]
        return Sweep(folder, _call(command, base + at_a_time + again + shown))
    _Cluster(command, file, folder, batch_seconds, retry_failed, program_on_workers).run(dask)
    return Sweep(folder, _call(command, base + ["--report"] + shown))


def _places(spec: Union[_Path, Mapping[str, Any]], output: Optional[_Path]) -> tuple[Path, Path]:
    """The sweep's file and its folder."""
    if not isinstance(spec, Mapping):
        file = Path(os.fspath(spec))
        return file, Path(os.fspath(output)) if output is not None else Path(file.stem + ".sweep")
    if output is None:
        raise UsageError("output: a sweep that is given as a dictionary needs a folder")
    folder = Path(os.fspath(output))
    file, text = folder.with_suffix(".toml"), _toml(spec)
    if file.exists() and file.read_text() != text:
        raise UsageError(f"{file}: is there and says something else; name another output, or remove it")
    file.write_text(text)
    return file, folder


def _toml(spec: Mapping[str, Any]) -> str:
    """A sweep's dictionary as its file. Strings, numbers, lists and tables of them are all that it has."""

    def value(it: Any) -> str:
        if isinstance(it, bool):
            return "true" if it else "false"
        if isinstance(it, (int, float)):
            return repr(it)
        if isinstance(it, (str, os.PathLike)):
            return json.dumps(os.fspath(it))
        if isinstance(it, Mapping):
            return "{ " + ", ".join(f"{json.dumps(str(k))} = {value(v)}" for k, v in it.items()) + " }"
        if isinstance(it, range):
            return f"{{ from = {it.start}, to = {it[-1]}, step = {it.step} }}"
        return "[" + ", ".join(value(v) for v in it) + "]"

    lines = [] if "format" in spec else ['format = "fsage.sweep/1"']
    lines += [f"{key} = {value(it)}" for key, it in spec.items() if key != "axes"]
    lines += ["", "[axes]"] + [f"{key} = {value(it)}" for key, it in spec.get("axes", {}).items()]
    return "\n".join(lines) + "\n"


_CLASSES = {1: CheckError, 2: UsageError, 3: HostError, 4: InputError}


def _call(command: Path, arguments: Sequence[str], quiet: bool = False) -> dict[str, Any]:
    """Runs fsage with ``--json`` and returns what it prints. Tasks that failed (exit code 1) are a result."""
    errors = subprocess.PIPE if quiet else None
    done = subprocess.run(
        [str(command), *arguments, "--json"], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL
    )
    if done.returncode in (0, 1) and done.stdout:
        document: dict[str, Any] = json.loads(done.stdout)
        return document
    said = (done.stderr or b"").decode(errors="replace").strip().splitlines()
    message = said[-1].removeprefix("fsage: ") if said else f"fsage {' '.join(arguments)} ended with {done.returncode}"
    raise (Interrupted if done.returncode in (130, 143) else _CLASSES.get(done.returncode, HostError))(message)


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers of tasks as ``--tasks`` takes them: ``1..4,9``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{a}..{b}" if b > a else str(a) for a, b in found)


def _run_batch(bundle: dict[str, Any], numbers: str) -> dict[str, Any]:
    """On a worker: runs tasks, and returns their part of the sweep as files.

    It uses the standard library alone: workers need no fsage.
    """
    import importlib
    import io
    import shutil
    import subprocess
    import tarfile
    import tempfile
    import time
    from pathlib import Path

    try:
        worker: Any = importlib.import_module("distributed").get_worker()
        home = Path(worker.local_directory)
    except (ImportError, ValueError, AttributeError):
        home = Path(tempfile.gettempdir())
    place = home / f"fsage-sweep-{bundle['digest']}"
    if not place.is_dir():
        # Threads and processes may come here together: the first whole one has the name, the others go.
        growing = Path(tempfile.mkdtemp(prefix="fsage-sweep-", dir=home))
        with tarfile.open(fileobj=io.BytesIO(bundle["tar"])) as tar:
            tar.extractall(growing, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(growing)
        try:
            growing.rename(place)
        except OSError:
            shutil.rmtree(growing, ignore_errors=True)
    program = bundle["program"] or str(place / "fsage")
    part = Path(tempfile.mkdtemp(prefix="part-", dir=home))
    began = time.monotonic()
    try:
        arguments = [
            program,
            "sweep",
            str(place / bundle["spec"]),
            "--tasks",
            numbers,
            "-o",
            str(part),
            "--jobs",
            "1",
            "--json",
        ]
        done = subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise RuntimeError(f"tasks {numbers}: {said[-1] if said else f'fsage ended with {done.returncode}'}")
        files = {name: (part / name).read_bytes() for name in ("sweep.json", "journal")}
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {"files": files, "seconds": time.monotonic() - began}


class _Cluster:
    """One run of a sweep on a Dask cluster."""

    def __init__(
        self,
        command: Path,
        file: Path,
        folder: Path,
        batch_seconds: float,
        retry_failed: bool,
        program_on_workers: Optional[str],
    ) -> None:
        self.command, self.file, self.folder = command, file, folder
        self.batch_seconds, self.retry_failed = batch_seconds, retry_failed
        self.program_on_workers = program_on_workers
        # Parts that have come back, and are not in the data set yet: on the disk, so that a killed client loses none.
        self.parts = folder.with_name(folder.name + ".parts")

    def run(self, dask: Any) -> None:
        """Runs what is to do."""
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            need = "dask.distributed is not installed; get it with: python3 -m pip install 'dask[distributed]'"
            raise HostError(need) from None
        listed = _call(self.command, ["sweep", str(self.file), "--list"], quiet=True)
        self.collect()
        numbers = self.to_do(int(listed["tasks"]))
        if not numbers:
            return
        bundle = self.bundle(listed["inputs"])
        own = not isinstance(dask, distributed.Client)
        client: Any = distributed.Client(dask) if own else dask
        try:
            self.drive(client, bundle, numbers)
        finally:
            if own:
                client.close()
            self.collect()
            # What a killed client left half written is in nobody's way, and goes with the rest.
            shutil.rmtree(self.parts, ignore_errors=True)

    def to_do(self, tasks: int) -> list[int]:
        """Numbers of the tasks that have not ended; with `retry_failed`, those too that failed."""
        if not (self.folder / "sweep.json").exists():
            return list(range(1, tasks + 1))
        status = _call(self.command, ["sweep", str(self.file), "-o", str(self.folder), "--status"], quiet=True)
        numbers = [n for first, last in status["to_do"] for n in range(first, last + 1)]
        if self.retry_failed:
            numbers += [task for task, _ in status["failures"]]
        return sorted(numbers)

    def bundle(self, inputs: Sequence[str]) -> dict[str, Any]:
        """What a worker needs: the sweep's file, what its tasks read (as the file names it), and the program."""
        relative = [path for path in inputs if not os.path.isabs(path)]
        # As deep as the farthest way up, so that nothing is outside.
        up = max((posixpath.normpath(path).split("/").count("..") for path in relative), default=0)
        below = "/".join(["x"] * up)
        spec = posixpath.join(below, self.file.name)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.add(self.file, spec)
            for path in relative:
                tar.add(self.file.parent / path, posixpath.normpath(posixpath.join(below, path)))
            if self.program_on_workers is None:
                tar.add(self.command.resolve(), "fsage")
        data = buffer.getvalue()
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        return {"digest": digest, "tar": data, "spec": spec, "program": self.program_on_workers}

    def drive(self, client: Any, bundle: dict[str, Any], numbers: list[int]) -> None:
        """Keeps every thread of the cluster busy until all is done."""
        [sent] = client.scatter([bundle], broadcast=True)
        # Of no module that a worker would have to import: it travels whole.
        work = types.FunctionType(_run_batch.__code__, {"__builtins__": __builtins__}, "_run_batch")
        work.__module__ = "__main__"
        threads = max(1, sum(client.nthreads().values()))
        size, begin, ran, seconds = 1, 0, 0, 0.0
        running: Any = importlib.import_module("distributed").as_completed()
        waiting: dict[Any, int] = {}
        said = time.monotonic()
        # Workers go on meanwhile, and are given tasks.
        collecting = ThreadPoolExecutor(1)
        taken, again_at = collecting.submit(float), said + _COLLECT_EVERY_S
        while begin < len(numbers) or waiting:
            while begin < len(numbers) and len(waiting) < _IN_FLIGHT * threads:
                # The last batches are small, so that all threads end at about the same time.
                fair = -(-(len(numbers) - begin) // (_IN_FLIGHT * threads))
                batch = numbers[begin : begin + max(1, min(size, fair))]
                begin += len(batch)
                future = client.submit(work, sent, _ranges(batch), pure=False)
                waiting[future] = len(batch)
                running.add(future)
            future = next(running)
            part = future.result()
            count = waiting.pop(future)
            self.keep(part["files"])
            ran, seconds = ran + count, seconds + part["seconds"]
            size = max(1, int(self.batch_seconds / max(seconds / ran, 1e-4)))
            threads = max(1, sum(client.nthreads().values()))
            now = time.monotonic()
            if taken.done() and now > again_at:
                # The data set is written anew each time: the larger it is, the less often.
                again_at = now + max(_COLLECT_EVERY_S, _COLLECT_ONE_IN * taken.result())
                taken = collecting.submit(self.collect)
            if now - said > _COLLECT_EVERY_S:
                left = seconds / ran * (len(numbers) - ran) / threads
                print(f"fsage: {ran} of {len(numbers)} tasks done, {left:.0f} s left", file=sys.stderr)
                said = now
        collecting.shutdown()
        taken.result()

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Writes a part to the disk, whole or not at all."""
        self.parts.mkdir(exist_ok=True)
        growing = Path(tempfile.mkdtemp(prefix=".part-", dir=self.parts))
        for name, data in files.items():
            (growing / name).write_bytes(data)
        growing.rename(self.parts / f"part-{uuid.uuid4().hex}")

    def collect(self) -> float:
        """Takes the parts that are there into the data set. How long that took, seconds."""
        began = time.monotonic()
        parts = sorted(self.parts.glob("part-*")) if self.parts.is_dir() else []
        if parts:
            arguments = ["sweep", str(self.file), "-o", str(self.folder), "--collect", *map(str, parts)]
            _call(self.command, arguments, quiet=True)
        for part in parts:
            shutil.rmtree(part)
        return time.monotonic() - began


def main() -> int:
    """The command behind ``fsage sweep --dask``."""
    parser = argparse.ArgumentParser(prog="python3 -m fsage.sweep", description="Run a sweep on a Dask cluster.")
    parser.add_argument("spec", metavar="SPEC.toml")
    parser.add_argument("--dask", metavar="ADDRESS", required=True, help="the scheduler's address: tcp://HOST:8786")
    parser.add_argument("-o", "--output", metavar="DIR")
    parser.add_argument("--batch-seconds", metavar="S", type=float, default=4.0, help="how long a batch takes, about")
    parser.add_argument("--program", metavar="FILE", help="the command fsage")
    parser.add_argument("--program-on-workers", metavar="FILE", help="the same on the workers; without it, it is sent")
    parser.add_argument("--metric", metavar="FIGURE")
    parser.add_argument("--part", metavar="PART")
    parser.add_argument("--html", metavar="FILE")
    parser.add_argument("--retry-failed", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    try:
        done = sweep(given.pop("spec"), **given)
    except Error as error:
        print(f"fsage: {error}", file=sys.stderr)
        return next((code for code, kind in _CLASSES.items() if isinstance(error, kind)), 130)
    except KeyboardInterrupt:
        print("fsage: interrupted; what has come back is kept, and the same command goes on", file=sys.stderr)
        return 130
    if as_json:
        print(json.dumps(done.document, indent=2))
    else:
        print(f"{done.document['ended']} of {done.document['tasks']} tasks ended, {done.failed} failed: {done.folder}")
    return 1 if done.failed else 0


if __name__ == "__main__":
    sys.exit(main())
