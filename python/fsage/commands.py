"""What the command `fsage` does for Python: recording, measuring, replaying, validating, aging of mounted systems,
experiments.

These fork, trace, mount and drop caches, so they run the binary that the package carries, as a process of its own;
results come back as
JSON. Ctrl-C is passed on to it, and it cleans up before it ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Any, Optional, Union

from . import _fsage, errors
from ._fsage import Table
from ._values import Duration, Size, duration_ns, table
from .errors import HostError, UsageError
from .systems import System
from .workloads import Workload

__all__ = ["Result", "age", "binary", "experiments", "measure", "record", "replay", "reproduce", "run", "validate"]

_Path = Union[str, "os.PathLike[str]"]


def binary() -> Path:
    """The command `fsage` that is run: `$FSAGE` if it is set, else that of this installation, else the first on the
    path.

    Raises `HostError` where there is none.
    """
    named = os.environ.get("FSAGE")
    if named:
        return Path(named)
    # As pip places it: beside this interpreter, in a user's own scheme, or below a target directory.
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", scheme=f"{os.name}_user")]
    package = Path(__file__).resolve().parent
    for place in [Path(scheme) for scheme in schemes if scheme] + [package.parent / "bin"]:
        if (place / "fsage").is_file():
            return place / "fsage"
    found = which("fsage")
    if found is None:
        raise HostError("the command fsage is not installed; install the wheel, or name it in the environment as FSAGE")
    return Path(found)


class Result:
    """The result of a command: `document` is what it prints with `--json`, in its versioned schema
    (docs/formats.md)."""

    def __init__(self, document: dict[str, Any], exit_code: int = 0) -> None:
        self.document = document
        self.exit_code = exit_code

    @property
    def schema(self) -> str:
        """The schema and its version: `fsage.validate/1`."""
        return str(self.document["schema"])

    def part(self, path: str) -> Any:
        """A part of the document by the names on the way, with dots between: ``"outcomes.0.rows"``."""
        found: Any = self.document
        for name in path.split("."):
            try:
                found = found[int(name)] if isinstance(found, list) else found[name]
            except (KeyError, IndexError, ValueError, TypeError):
                there = f"{len(found)} elements" if isinstance(found, list) else "nothing in it"
                there = ", ".join(found) if isinstance(found, dict) else there
                raise UsageError(f"{path}: there is no {name}; there is {there}") from None
        return found

    def table(self, path: str) -> Table:
        """A list in the document as a table (see `part`). An object is a table of one row."""
        part = self.part(path)
        return table(part if isinstance(part, list) else [part])

    def __repr__(self) -> str:
        return f"<fsage.Result {self.schema}: {', '.join(name for name in self.document if name != 'schema')}>"


_CLASSES = {1: errors.CheckError, 2: errors.UsageError, 3: errors.HostError, 4: errors.InputError}


def _said(text: str) -> str:
    """The last message on standard error, without the program's name before it."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    message = next((line for line in reversed(lines) if line.startswith(("fsage:", "error:"))), last)
    for name in ("fsage:", "error:"):
        message = message.removeprefix(name).strip()
    return message


def run(
    arguments: Sequence[Union[str, "os.PathLike[str]"]],
    *,
    cwd: Optional[_Path] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[int] = subprocess.DEVNULL,
) -> subprocess.CompletedProcess[str]:
    """Runs `fsage` with these arguments in a session of its own, and waits for it.

    Ctrl-C is passed on once for each time; the command removes what it made, and only then `KeyboardInterrupt` goes
    on. Raises nothing where
    the command fails: its exit code says how (`fsage --help`).
    """
    command = [os.fspath(binary()), *(os.fspath(argument) for argument in arguments)]
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="backslashreplace",
            # Its own session: a terminal's Ctrl-C comes to Python alone, and from here once.
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(f"cannot run {command[0]}: {error}") from error
    with process:
        interrupted: Optional[KeyboardInterrupt] = None
        while True:
            try:
                out, err = process.communicate()
                break
            except KeyboardInterrupt as error:
                interrupted = error
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
            except BaseException:
                # Whatever else ends us ends it, too.
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                process.wait()
                raise
    if interrupted is not None:
        raise interrupted
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _raised(done: subprocess.CompletedProcess[str], result: Optional[Result]) -> errors.Error:
    code = done.returncode
    message = _said(done.stderr) or f"fsage ended with {code}"
    if code in (130, 143) or code < 0:
        return errors.Interrupted(message)
    error = _CLASSES.get(code, errors.HostError)(message)
    if isinstance(error, errors.CheckError):
        error.result = result
    return error


def _result(arguments: Sequence[Union[str, "os.PathLike[str]"]]) -> Result:
    """Runs a command with `--json`; its result, or the exception of its exit code."""
    done = run([*arguments, "--json"])
    result = None
    if done.stdout.strip():
        try:
            result = Result(json.loads(done.stdout), done.returncode)
        except ValueError as error:
            raise HostError(f"fsage printed no JSON: {error}") from error
    if done.returncode != 0 or result is None:
        raise _raised(done, result)
    return result


def _option(name: str, value: Any) -> list[str]:
    """An option as the command line has it; nothing for `None` and `False`."""
    if value is None or value is False:
        return []
    flag = "--" + name.replace("_", "-")
    return [flag] if value is True else [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


def _time(time: Optional[Duration]) -> Optional[str]:
    """A duration for an option that takes s, m and h."""
    if time is None or isinstance(time, str):
        return time
    return f"{duration_ns(time) / 1e6:.0f}ms"


def record(
    command: Sequence[Union[str, "os.PathLike[str]"]],
    output: _Path,
    *,
    overwrite: bool = False,
    root: Sequence[_Path] = (),
    using: Optional[str] = None,
    duration: Optional[Duration] = None,
    anonymise: bool = False,
    cwd: Optional[_Path] = None,
    env: Optional[Mapping[str, str]] = None,
) -> Workload:
    """Runs a command and records its file system calls (`fsage record`).

    Runs the carried binary, which traces with BPF or strace. The command has no terminal: its standard input is empty,
    its output is dropped.

    Args:
        command: program and arguments.
        output: the profile to write, `NAME.workload`.
        overwrite: replace one that is there.
        root: directories below which all names are read before the run.
        using: ``"ebpf"`` or ``"strace"`` (the best that is permitted, where not given).
        duration: end the recording after so long (``"10m"``); what is recorded goes on.
        anonymise: hide every name.
        cwd: the command's directory.
        env: variables beside those of this process.

    Raises:
        HostError: neither tracer may trace; no space.
        CheckError: the command failed. The recording is there all the same: `Workload(output)`.
    """
    target = Path(output).absolute()
    arguments: list[Union[str, os.PathLike[str]]] = ["record", "--json", "-o", target]
    arguments += _option("overwrite", overwrite) + _option("anonymise", anonymise)
    arguments += _option("with", using) + _option("duration", _time(duration))
    for directory in root:
        arguments += ["--root", Path(directory).absolute()]
    done = run([*arguments, "--", *command], cwd=cwd, env=env)
    if done.returncode == 0:
        return Workload(target)
    if done.stdout.strip():
        # There is a summary, so there is a profile: the exit code is the command's own.
        words = " ".join(os.fspath(word) for word in command)
        error = errors.CheckError(f"{words} ended with {done.returncode}; {target} has its recording")
        error.result = Result(json.loads(done.stdout), done.returncode)
        raise error
    raise _raised(done, None)


def measure(
    target: Union[str, "os.PathLike[str]"],
    output: Optional[_Path] = None,
    *,
    name: Optional[str] = None,
    full: bool = False,
    budget: Optional[Duration] = None,
    seed: int = 1,
    overwrite: bool = False,
) -> System:
    """Measures what elementary operations cost on a target (`fsage measure`).

    Runs the carried binary; scratch targets (``"ext4:8G"``) are made, mounted and removed, as root.

    Args:
        target: a directory, a scratch file system, or a laboratory (``"ffs:size=64M"``).
        output: where the profile stays (nowhere, where not given).
        name: the name used in tables (the target, where not given).
        full: more rounds and larger files.
        budget: time to stay within, by the target's clock (``"45s"``).
        seed: of every random choice.
        overwrite: replace a file that is there.
    """
    if output is not None and not overwrite and Path(output).exists():
        raise UsageError(f"{output}: is already there and is not overwritten; say overwrite=True or name another")
    with tempfile.TemporaryDirectory(prefix="fsage-python-") as directory:
        path = Path(directory) / "measured.system" if output is None else Path(output)
        # A name of the profile that does not depend on the temporary file.
        options = [*_option("name", name), *_option("full", full)]
        options += [*_option("budget", _time(budget)), *_option("seed", seed)]
        _result(["measure", target, "-o", path, *options])
        return System(_fsage.System.load(path))


def replay(
    workload: Union[Workload, _Path], target: Union[str, "os.PathLike[str]"], *, seed: int = 1
) -> Result:
    """Makes a workload's calls again on a target, times and checks them (`fsage replay`). Runs the carried binary."""
    path = workload.path if isinstance(workload, Workload) else workload
    return _result(["replay", path, "--on", os.fspath(target), *_option("seed", seed)])


def validate(
    workloads: Union[Workload, _Path, Iterable[Union[Workload, _Path]]],
    on: Union[str, Iterable[str]],
    *,
    systems: Optional[Mapping[str, _Path]] = None,
    repeats: Optional[int] = None,
    max_repeats: Optional[int] = None,
    precision: Optional[float] = None,
    budget: Optional[Duration] = None,
    initial: str = "cold",
    min_coverage: float = 0.9,
    max_error: Optional[float] = None,
    seed: int = 1,
) -> Result:
    """Holds predictions against replays (`fsage validate`): errors of each workload on each target, rankings, simpler
    methods beside them.

    Runs the carried binary. ``table("cells")`` has a row for each workload and target.

    Args:
        workloads: one or several.
        on: targets to replay on.
        systems: profiles of targets (target to path), so that they are not measured again.
        repeats: replays of each workload on each target, at least.
        max_repeats: and at most.
        precision: replay on until half the interval of the median is at most this share of it.
        budget: time for measuring each target.
        initial: what the caches hold at the start, ``"cold"`` or ``"warm"``.
        min_coverage: refuse a workload of which less than this share is covered.
        max_error: raise `CheckError` (with `result`) where the median error of the totals is above this share.
        seed: of every random choice.
    """
    if isinstance(workloads, (Workload, str, os.PathLike)):
        workloads = [workloads]
    arguments: list[Union[str, os.PathLike[str]]] = ["validate"]
    arguments += [w.path if isinstance(w, Workload) else w for w in workloads]
    for target in [on] if isinstance(on, str) else on:
        arguments += ["--on", target]
    for target, path in (systems or {}).items():
        arguments += ["--system", f"{target}={os.fspath(path)}"]
    for name, value in (("repeats", repeats), ("max_repeats", max_repeats), ("precision", precision)):
        arguments += _option(name, value)
    arguments += _option("budget", _time(budget)) + _option("initial", initial)
    arguments += _option("min_coverage", min_coverage) + _option("max_error", max_error) + _option("seed", seed)
    return _result(arguments)


def age(
    target: Union[str, "os.PathLike[str]"],
    plan: _Path,
    *,
    output: Optional[_Path] = None,
    days: Optional[int] = None,
    seed: int = 1,
    options: Sequence[str] = (),
) -> Result:
    """Replays an aging plan on a mounted, scratch or laboratory target (`fsage age`). Runs the carried binary.

    `options` are further ones as on the command line. `Lab.age` ages a laboratory in this process, which stays to be
    looked at.
    """
    path = getattr(plan, "path", plan)
    arguments = ["age", os.fspath(target), "--plan", os.fspath(path), *_option("days", days), *_option("seed", seed)]
    return _result([*arguments, *_option("output", output), *options])


def experiments() -> Table:
    """The published experiments that `reproduce` runs: `key`, `title`, `source`, what each runs. Asks the carried binary."""
    return _result(["reproduce", "--list"]).table("experiments")


def reproduce(
    keys: Union[str, Iterable[str]], *, quick: bool = False, seed: int = 1, seeds: int = 1
) -> Result:
    """Runs published experiments again, and gives published and our figures side by side (`fsage reproduce`). Runs the
    carried binary.

    ``table("outcomes.0.rows")`` has the figures of the first. Where a difference has no explanation, `fsage reproduce`
    ends with 1; here the
    result is returned with `exit_code` 1, since that is a finding and no failure.

    Args:
        keys: as in `experiments`: ``"alloc96/aggregate"``, ``"alloc96/*"``, ``"all"``.
        quick: run less of each than was published.
        seed: of everything random.
        seeds: run under so many seeds, from `seed` on.
    """
    names = [keys] if isinstance(keys, str) else list(keys)
    try:
        return _result(["reproduce", *names, *_option("quick", quick), "--seed", str(seed), "--seeds", str(seeds)])
    except errors.CheckError as error:
        if isinstance(error.result, Result):
            return error.result
        raise
