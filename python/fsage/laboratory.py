"""The laboratory as an object: `lab`, `Lab`, `LabFile`."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar, Union

from . import _fsage
from ._fsage import Table
from ._values import Duration, Size, duration_ns, loads, size_bytes, whole
from .errors import UsageError
from .plans import Aged, Plan
from .surveys import Survey

__all__ = ["Lab", "LabFile", "lab"]

_Path = Union[str, "os.PathLike[str]"]
_T = TypeVar("_T")


def _at(offset: Optional[int]) -> Optional[int]:
    return None if offset is None else whole("offset", offset)


class LabFile:
    """An open file, directory or description of a `Lab`. A `with` statement closes it.

    Every method that makes a call sets `Lab.took_ns`.
    """

    def __init__(self, lab: Lab, path: str, fd: int) -> None:
        self.lab = lab
        self.path = path
        self.fd = fd
        self.closed = False

    def write(self, what: Union[bytes, Size], offset: Optional[int] = None) -> int:
        """Writes these bytes, or so many of the laboratory's own (``"64K"``, or a number), and says how many were
        written.

        At `offset`, or where the last call ended. Bytes that are given can be read again; of others the laboratory
        keeps only that they
        are there, unless the target says ``data=full``.
        """
        if isinstance(what, bytes):
            return self.lab._timed(self.lab._own.write(self.fd, len(what), _at(offset), what))
        return self.lab._timed(self.lab._own.write(self.fd, size_bytes(what), _at(offset)))

    def read(self, size: Optional[Size] = None, offset: Optional[int] = None) -> int:
        """Reads so many bytes (all there are, where not said), and says how many were read. What they are, `content`
        says.

        At `offset`, or where the last call ended.
        """
        offset = _at(offset)
        if size is not None:
            return self.lab._timed(self.lab._own.read(self.fd, size_bytes(size), offset))
        total, took = 0, 0
        while True:
            n = self.lab._timed(self.lab._own.read(self.fd, 1 << 20, None if offset is None else offset + total))
            took += self.lab.took_ns
            if n == 0:
                self.lab.took_ns = took
                return total
            total += n

    def content(self, size: Optional[Size] = None, offset: int = 0) -> bytes:
        """The bytes in the file, without any time passing: to check, not to measure."""
        offset = whole("offset", offset)
        if size is None:
            size = max(0, int(self.lab._look(self.path)["size_bytes"]) - offset)
        return self.lab._own.content(self.fd, offset, size_bytes(size))

    def truncate(self, size: Size) -> None:
        """Sets the length in bytes."""
        self.lab.took_ns = self.lab._own.ftruncate(self.fd, size_bytes(size))

    def fsync(self, data_only: bool = False) -> None:
        """Brings the file to stable storage (`fsync`; with `data_only`, `fdatasync`)."""
        self.lab.took_ns = self.lab._own.fsync(self.fd, data_only)

    def scan(self) -> None:
        """Reads an open directory to its end, as a program does."""
        self.lab.took_ns = self.lab._own.scan(self.fd)

    def entries(self) -> list[tuple[str, str]]:
        """The names in an open directory, and ``"file"``, ``"directory"``, ``"symlink"`` or ``"special"``. No time
        passes."""
        return self.lab._own.entries(self.fd)

    def evict(self) -> None:
        """Writes the file back and takes its data out of the cache."""
        self.lab._own.evict(self.fd)

    def extents(self) -> Table:
        """Where the data lies: `logical_bytes` in the file, `physical_bytes` on the drive, `len_bytes`."""
        return self.lab._own.extents(self.fd)

    def close(self) -> None:
        """Closes it. A second time does nothing."""
        if not self.closed:
            self.closed = True
            self.lab.took_ns = self.lab._own.close(self.fd)

    def __enter__(self) -> LabFile:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self.lab.is_open:
            self.close()

    def __repr__(self) -> str:
        return f"<fsage.LabFile {self.path} of {self.lab.target}>"


class Lab:
    """A complete file system on a modelled drive and machine, in virtual time, in this process.

    The same calls take the same time on any machine. `now` is the virtual clock; `took_ns` is how long the last call
    took. Files are named
    by paths from the root, `/`. A call that fails raises `CallError`, an `OSError` with its `errno`.
    """

    def __init__(self, target: Union[str, _fsage.Lab]) -> None:
        self._own = target if isinstance(target, _fsage.Lab) else _fsage.Lab(target)
        self.took_ns: int = 0
        """How long the last call took, nanoseconds of virtual time."""

    def _timed(self, answer: tuple[_T, int]) -> _T:
        self.took_ns = answer[1]
        return answer[0]

    def _look(self, path: str) -> dict[str, Any]:
        return loads(self._own.stat(path, True)[0])

    @property
    def target(self) -> str:
        """As it was asked for: ``"ffs:realloc,size=502M@st32430n"``."""
        return self._own.target

    @property
    def made(self) -> str:
        """Every parameter of the file system as it was made, in the words of the targets' grammar (docs/targets.md)."""
        return self._own.made()

    @property
    def is_open(self) -> bool:
        """Whether it is still mounted."""
        return self._own.is_open

    @property
    def now(self) -> int:
        """The virtual clock, nanoseconds since it was mounted."""
        return self._own.now_ns()

    @property
    def date_ns(self) -> int:
        """The date that files get, nanoseconds since 1970."""
        return self._own.date_ns()

    @property
    def usage(self) -> dict[str, Any]:
        """Space and inodes: `total_bytes`, `free_bytes`, `available_bytes`, `total_inodes`, `free_inodes`,
        `block_bytes`."""
        return loads(self._own.usage())

    @property
    def counters(self) -> dict[str, Any]:
        """What went on below the calls: buffer cache, name cache, requests at the drive, and who was busy how long."""
        return loads(self._own.counters())

    # Files

    def open(self, path: _Path, mode: str = "r", *, permissions: int = 0o644, flags: str = "") -> LabFile:
        """Opens a file: ``"r"`` to read, ``"w"`` anew, ``"x"`` where there is none, ``"a"`` at its end, each with
        ``"+"`` for both ways.

        `flags` are more words of `open(2)`, by spaces: ``sync dsync direct noatime nofollow directory``.
        """
        letters = mode.replace("b", "")
        words = {
            "r": ["read"],
            "r+": ["read", "write"],
            "w": ["write", "create", "truncate"],
            "w+": ["read", "write", "create", "truncate"],
            "x": ["write", "create", "exclusive"],
            "x+": ["read", "write", "create", "exclusive"],
            "a": ["write", "create", "append"],
            "a+": ["read", "write", "create", "append"],
        }.get(letters)
        if words is None:
            raise UsageError(f"mode={mode!r}: there are r, w, x and a, each with or without +")
        fd = self._timed(self._own.open(path, words + flags.split(), permissions))
        return LabFile(self, os.fspath(path), fd)

    def create(self, path: _Path, permissions: int = 0o644) -> LabFile:
        """Makes a file that is not there yet, open both ways."""
        return self.open(path, "x+", permissions=permissions)

    def directory(self, path: _Path = "/") -> LabFile:
        """Opens a directory, to read its names or to sync it."""
        return self.open(path, "r", flags="directory")

    def write(self, path: _Path, what: Union[bytes, Size], offset: Optional[int] = None) -> int:
        """Opens or makes a file, writes into it (at its end where no `offset` is given) and closes it. `took_ns` is of
        all three calls."""
        return self._whole(self.open(path, "a" if offset is None else "r+"), lambda f: f.write(what, offset))

    def read(self, path: _Path, size: Optional[Size] = None, offset: int = 0) -> int:
        """Opens a file, reads it (from `offset` on) and closes it; how many bytes. `took_ns` is of all those calls."""
        return self._whole(self.open(path), lambda f: f.read(size, offset))

    def fsync(self, path: _Path) -> None:
        """Opens a file, brings it to stable storage and closes it. `took_ns` is of all three calls."""
        self._whole(self.open(path), lambda f: f.fsync())

    def _whole(self, file: LabFile, act: Callable[[LabFile], _T]) -> _T:
        took = self.took_ns
        with file:
            answer = act(file)
            took += self.took_ns
        self.took_ns += took
        return answer

    def truncate(self, path: _Path, size: Size) -> None:
        """Sets a file's length in bytes."""
        self.took_ns = self._own.truncate(path, size_bytes(size))

    def unlink(self, path: _Path) -> None:
        """Removes a name of a file."""
        self.took_ns = self._own.unlink(path)

    def mkdir(self, path: _Path, permissions: int = 0o755) -> None:
        """Makes a directory."""
        self.took_ns = self._own.mkdir(path, permissions)

    def rmdir(self, path: _Path) -> None:
        """Removes an empty directory."""
        self.took_ns = self._own.rmdir(path)

    def rename(self, old: _Path, new: _Path) -> None:
        """Renames, over what has the new name."""
        self.took_ns = self._own.rename(old, new)

    def link(self, old: _Path, new: _Path) -> None:
        """Makes a further name (a hard link)."""
        self.took_ns = self._own.link(old, new)

    def symlink(self, target: _Path, path: _Path) -> None:
        """Makes a symbolic link to `target`."""
        self.took_ns = self._own.symlink(target, path)

    def stat(self, path: _Path, follow: bool = True) -> dict[str, Any]:
        """Attributes: `ino`, `kind`, `mode`, `nlink`, `size_bytes`, `allocated_bytes`, and times in nanoseconds since
        1970."""
        return loads(self._timed(self._own.stat(path, follow)))

    def listdir(self, path: _Path = "/") -> list[str]:
        """The names in a directory, in the file system's own order. Opens, reads and closes it; `took_ns` is of all
        those calls."""

        def names(directory: LabFile) -> list[str]:
            directory.scan()
            return [name for name, _ in directory.entries()]

        return self._whole(self.directory(path), names)

    # Time and caches

    def pause(self, time: Duration) -> None:
        """Lets time pass without calls (``"30s"``, or nanoseconds): the syncer works meanwhile."""
        ns = duration_ns(time)
        if not 0 <= ns < 1 << 63:
            raise UsageError(f"pause {time!r}: a time from 0 to 292 years is needed")
        self._own.pause_ns(int(ns))

    def sync(self) -> None:
        """Writes everything back."""
        self.took_ns = self._own.sync()

    def drop_caches(self) -> None:
        """Writes everything back and empties all caches."""
        self._own.drop_caches()

    # Layout and aging

    def layout(self, *, hot_days: float = 30.0, worst: int = 20, map: Optional[int] = None) -> Survey:
        """Where files lie and what is left of the free space, as `fsage layout` says it.

        Args:
            hot_days: files modified in the last so many days count as hot.
            worst: how many of the files with the most breaks are listed.
            map: make a map of the disk, so many cells wide and high (a power of two up to 1024).
        """
        return Survey(loads(self._own.survey(hot_days, worst, map)))

    def extents(self, path: _Path) -> Table:
        """Where a file's data lies: `logical_bytes` in the file, `physical_bytes` on the drive, `len_bytes`."""
        return self._whole(self.open(path), lambda f: f.extents())

    def free_extents(self) -> Table:
        """The free space in the order of addresses: `physical_bytes`, `len_bytes`."""
        return self._own.free_extents()

    def age(
        self,
        plan: Union[Plan, _Path],
        *,
        days: Optional[int] = None,
        survey_days: Optional[float] = None,
        seed: int = 1,
    ) -> Aged:
        """Replays an aging plan on it, whose root must be empty.

        Args:
            plan: a `Plan`, or the path of one.
            days: end after so many simulated days.
            survey_days: take a survey every so many simulated days.
            seed: chooses files to delete where the plan deletes none in time.
        """
        plan = plan if isinstance(plan, Plan) else Plan(plan)
        result, surveys = self._own.age(plan._own, days, survey_days, seed)
        return Aged(loads(result), [loads(text) for text in surveys])

    def duplicate(self) -> Lab:
        """Another laboratory in just this state: clock, caches, arm of the disk. What is called on one changes nothing
        on the other."""
        return Lab(self._own.duplicate())

    def unmount(self, image: Optional[_Path] = None) -> None:
        """Writes everything back, and the file system into a new image file where one is named. Nothing can be called
        after it. A file that is there is not overwritten, and the laboratory stays open then.

        The image is read by other systems (docs/ffs-format.md). A log (``lfs``) needs ``data=full`` in its target for
        one.
        """
        if image is not None:
            if os.path.lexists(image):
                raise UsageError(f"{image}: is already there and is not overwritten; name another")
            if not Path(image).absolute().parent.is_dir():
                raise UsageError(f"{image}: there is no such directory")
        self._own.unmount(image)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self.is_open:
            self.unmount()

    def __repr__(self) -> str:
        return f"<fsage.Lab {self.target}{'' if self.is_open else ', unmounted'}>"


def lab(target: str) -> Lab:
    """Opens a laboratory: ``lab("ffs:realloc,size=502M@st32430n")``.

    `target` is file system, options and drive, in the grammar of every command (docs/targets.md): ``ffs`` and its modes
    (``softdep``, ``journal=async``, …), or ``lfs``.
    """
    return Lab(target)
