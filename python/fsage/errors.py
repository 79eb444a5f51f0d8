"""Exceptions, one class for each answer to the question whose fault it is. All are `Error`.

The command line has an exit code for each: 1 `CheckError`, 2 `UsageError`, 3 `HostError`, 4 `InputError`, 130 or 143 `Interrupted`.
"""

from __future__ import annotations

from typing import Any, Optional

__all__ = ["CallError", "CheckError", "Error", "HostError", "InputError", "Interrupted", "UsageError"]


class Error(Exception):
    """Anything that fsage refuses or cannot do. The message says what, where and what to do."""


class CheckError(Error):
    """Nothing went wrong, and a comparison or check that was asked for failed.

    `result` has the result of the command, where one ran and made one.
    """

    result: Optional[Any] = None


class UsageError(Error, ValueError):
    """What was asked for cannot be: another option, name or target is needed."""


class HostError(Error):
    """The machine or a file system refuses or lacks something: rights, a tool, space."""


class InputError(Error):
    """An input is not what it should be. The message names the file and the place in it."""


class Interrupted(Error):
    """A signal, or the caller, asked to stop. (Ctrl-C in Python itself is `KeyboardInterrupt`, as ever.)"""


class CallError(HostError, OSError):
    """A call on a laboratory failed, as it would on a mounted file system. `errno` is the number, as of `OSError`."""

    def __init__(self, errno: int, message: str) -> None:
        super().__init__(errno, message)

    def __str__(self) -> str:
        return str(self.args[1])
