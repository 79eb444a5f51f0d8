"""Predictions: `predict`, `explain`, `priced_calls`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from . import _fsage
from ._fsage import Table
from ._values import Duration, Size, duration_ns, loads, optional_size, size_bytes, table, whole
from .errors import UsageError
from .systems import System
from .workloads import Workload

__all__ = ["Explanation", "Prediction", "explain", "predict", "priced_calls"]

AnyWorkload = Union[Workload, str, "os.PathLike[str]"]
AnySystem = Union[System, str, "os.PathLike[str]"]


def _workload(workload: AnyWorkload) -> Workload:
    return workload if isinstance(workload, Workload) else Workload(workload)


def _systems(systems: Union[AnySystem, Iterable[AnySystem]]) -> list[System]:
    if isinstance(systems, (System, str, os.PathLike)):
        systems = [systems]
    found: list[System] = []
    given: list[AnySystem] = list(systems)
    for system in given:
        found.append(system if isinstance(system, System) else System(system))
    names = [system.name for system in found]
    # Two of one name could not be told apart in a table: as on the command line, they go by their files.
    for place, (system, source) in enumerate(zip(found, given)):
        if names.count(system.name) > 1:
            if isinstance(source, System):
                raise UsageError(f"two systems are called {system.name}: rename one, with named()")
            found[place] = system.named(os.fspath(source))
    return found


def _one_of(what: str, given: str, words: Sequence[str]) -> str:
    if given not in words:
        raise UsageError(f"{what}={given!r}: there are {', '.join(words)}")
    return given


def _options(
    cache: Optional[Size],
    cache_policy: Optional[str],
    set: Optional[Mapping[str, Duration]],
    min_coverage: float,
    initial: str,
    pace: str,
    processors: Optional[int],
    cache_sizes: Sequence[Size],
    seed: int,
) -> _fsage.Options:
    if not 0.0 <= min_coverage <= 1.0:
        raise UsageError(f"min_coverage={min_coverage}: a share from 0 to 1")
    if isinstance(cache_sizes, str):
        cache_sizes = [cache_sizes]
    sizes = sorted({size_bytes(size) for size in cache_sizes})
    if sizes and sizes[0] < 4096:
        raise UsageError(f"cache_sizes: {sizes[0]} bytes are less than a page; the least is 4096")
    return _fsage.Options(
        cache_bytes=optional_size(cache),
        cache_policy=cache_policy,
        set_ns=[(name, duration_ns(cost)) for name, cost in _costs(set).items()],
        min_coverage=min_coverage,
        warm=_one_of("initial", initial, ("cold", "warm")) == "warm",
        recorded_pace=_one_of("pace", pace, ("asap", "recorded")) == "recorded",
        processors=None if processors is None else whole("processors", processors, 1, 1 << 16),
        cache_sizes=sizes,
        seed=whole("seed", seed, most=(1 << 64) - 1),
    )


def _costs(set: Optional[Mapping[str, Duration]]) -> Mapping[str, Duration]:
    if set is not None and not isinstance(set, Mapping):
        raise UsageError(f"set={set!r}: costs by entry are needed, as in {{'rm': '50us'}}")
    return set or {}


class Explanation:
    """Why one system is faster than another for a workload: the difference of two predictions, taken apart.

    Differences are `b` less `a`, nanoseconds: positive where `a` is faster.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.a: str = document["a"]
        self.b: str = document["b"]

    @property
    def difference_ns(self) -> float:
        """The total of `b` less that of `a`, nanoseconds."""
        return float(self.document["difference_ns"])

    @property
    def by_entry(self) -> Table:
        """By entry of the vector, the largest contribution first: counts, what one costs, and the difference in
        `difference_ns`."""
        return table(self.document["by_entry"])

    @property
    def by_class(self) -> Table:
        """The same with the sizes of a curve together."""
        return table(self.document["by_class"])

    @property
    def by_op(self) -> Table:
        """By system call."""
        return table(self.document["by_op"])

    def __repr__(self) -> str:
        return f"<fsage.Explanation: {self.b} takes {self.difference_ns / 1e9:+.3f} s against {self.a}>"


class Prediction:
    """A workload's predicted time in the file system on each system, and what follows from it.

    `document` is the result of `fsage predict --json` (schema `fsage.predict/1`, docs/formats.md); the tables are
    parts of it. Times are
    nanoseconds; intervals (`_low`, `_high`) are 95 %, model error included.
    """

    def __init__(self, own: _fsage.Prediction) -> None:
        self._own = own
        self._document: Optional[dict[str, Any]] = None

    @property
    def document(self) -> dict[str, Any]:
        """Everything, as one dictionary."""
        if self._document is None:
            self._document = loads(self._own.json())
        return self._document

    def _each(self, part: str) -> Table:
        systems = self.document["prediction"]["systems"]
        return table([{"system": s["system"], **row} for s in systems for row in s[part]])

    @property
    def ranking(self) -> Table:
        """The systems, the fastest first: `total_ns`, its interval, the ratio to the fastest, `p_fastest`,
        `ties_with_fastest`."""
        return table(self.document["ranking"]["systems"])

    @property
    def pairs(self) -> Table:
        """Every two systems: ratio, its interval, whether they cannot be told apart."""
        return table(self.document["ranking"]["pairs"])

    @property
    def by_op(self) -> Table:
        """For each system a row for each system call: how many, and their time."""
        return self._each("by_op")

    @property
    def by_entry(self) -> Table:
        """For each system a row for each elementary operation: how often (`weight`), what it costs, the product
        (`ns`)."""
        return self._each("by_entry")

    @property
    def by_directory(self) -> Table:
        """For each system the most expensive directories, subtrees added up."""
        return self._each("by_directory")

    @property
    def by_file(self) -> Table:
        """For each system the most expensive files."""
        return self._each("by_file")

    @property
    def cache(self) -> Table:
        """What the caches did: a row for each system."""
        systems = self.document["prediction"]["systems"]
        size = "data_cache_bytes"
        return table([{"system": s["system"], size: s[size], **s["cache"]} for s in systems])

    @property
    def cache_sizes(self) -> Table:
        """Totals and misses with data caches of other sizes, where `cache_sizes` was asked for."""
        return table(self.document.get("cache_sizes", []))

    @property
    def tipping(self) -> Table:
        """What would change the first two places."""
        return table(self.document["tipping"])

    @property
    def run_time(self) -> Table:
        """How long the program takes in all on each system, `ns`; empty where that is not known (`run_time_unknown`
        says why)."""
        known = (self.document.get("run_time") or {}).get("known")
        if known is None:
            return table([])
        systems = self.document["prediction"]["systems"]
        return table([{"system": s["system"], **row} for s, row in zip(systems, known["systems"])])

    @property
    def run_time_unknown(self) -> Optional[str]:
        """Why the run time is not known; `None` where it is."""
        why: Optional[str] = (self.document.get("run_time") or {}).get("unknown")
        return why

    @property
    def coverage(self) -> dict[str, Any]:
        """How much of the workload's activity the prediction covers."""
        found: dict[str, Any] = self.document["prediction"]["coverage"]
        return found

    @property
    def fastest(self) -> str:
        """The name of the first system in the ranking. `ranking` says whether others cannot be told from it."""
        name: str = self.document["ranking"]["systems"][0]["system"]
        return name

    def explain(self, a: Optional[str] = None, b: Optional[str] = None) -> Explanation:
        """Takes the difference of two systems apart; of the first two in the ranking where none are named. A beginning
        no other system's name has is enough."""
        if (a is None) != (b is None):
            raise UsageError("explain: name two systems or none")
        text = self._own.explained(None if a is None or b is None else (a, b))
        if text == "null":
            raise UsageError("explain: one system was predicted, and it takes two")
        return Explanation(loads(text))

    def report(self, format: str = "text", width: Optional[int] = None) -> str:
        """The report of `fsage predict` as `text` (of a width in columns), `markdown`, or `html` with its plots in
        it."""
        return self._own.report(format, width)

    def _repr_markdown_(self) -> str:
        return self.report("markdown")

    def __repr__(self) -> str:
        rows = ", ".join(f"{r['system']} {r['total_ns'] / 1e9:.3f} s" for r in self.document["ranking"]["systems"])
        return f"<fsage.Prediction of {self.document['workload']}: {rows}>"


def predict(
    workload: AnyWorkload,
    systems: Union[AnySystem, Iterable[AnySystem]],
    *,
    cache: Optional[Size] = None,
    cache_policy: Optional[str] = None,
    set: Optional[Mapping[str, Duration]] = None,
    min_coverage: float = 0.9,
    initial: str = "cold",
    pace: str = "asap",
    processors: Optional[int] = None,
    cache_sizes: Sequence[Size] = (),
    seed: int = 1,
) -> Prediction:
    """Predicts a workload's time in the file system on each system, in this process.

    What `fsage predict` says, with the same options, seed and version, to the byte. Other threads run meanwhile;
    Ctrl-C ends it.

    Args:
        workload: a `Workload`, or the path of one.
        systems: one or several: a `System`, the name of a bundled one (``"ext4"``), or the path of one.
        cache: what if the data cache had this size on every system (``"16G"``, or bytes).
        cache_policy: what if it evicted by ``"lru"``, ``"clock"``, ``"sieve"``, ``"s3-fifo"``, ``"arc"`` or
            ``"linux"``.
        set: what if elementary operations cost this on every system: ``{"rm": "50us"}`` (a number: nanoseconds).
        min_coverage: refuse a workload of which less than this share (0 to 1) is covered.
        initial: what the caches hold at the start, ``"cold"`` or ``"warm"``.
        pace: calls as soon as possible (``"asap"``), or not before they were ``"recorded"``.
        processors: predict the run time on so many processors (the recording machine's where not given).
        cache_sizes: predict with these data caches too; each costs a prediction of each system.
        seed: of the resampling behind the intervals.

    Raises:
        CheckError: too little of the workload is covered.
        InputError: a file is damaged, or a profile lacks what the workload needs.
        UsageError: an argument makes no sense.
    """
    w = _workload(workload)
    options = _options(cache, cache_policy, set, min_coverage, initial, pace, processors, cache_sizes, seed)
    return Prediction(_fsage.predict(os.fspath(w.path), w._own, [s._own for s in _systems(systems)], options))


def explain(workload: AnyWorkload, a: AnySystem, b: AnySystem, **options: Any) -> Explanation:
    """Predicts a workload on two systems and takes the difference apart. Options are those of `predict`."""
    first, second = _systems([a, b])
    return predict(workload, [first, second], **options).explain(first.name, second.name)


def priced_calls(
    workload: AnyWorkload,
    system: AnySystem,
    *,
    cache: Optional[Size] = None,
    cache_policy: Optional[str] = None,
    set: Optional[Mapping[str, Duration]] = None,
    min_coverage: float = 0.9,
    initial: str = "cold",
    pace: str = "asap",
    seed: int = 1,
) -> Table:
    """Every call that has a price, in order: `seq` (its row in `Workload.calls`), `op`, what it took when it was
    recorded
    (`recorded_ns`), what is predicted (`predicted_ns`), and how much of that is waiting for write-back (`stall_ns`).

    About 36 bytes a call. Options are those of `predict`.
    """
    options = _options(cache, cache_policy, set, min_coverage, initial, pace, None, (), seed)
    return _fsage.priced_calls(_workload(workload)._own, _systems(system)[0]._own, options)
