"""Predict how fast a workload runs on a file system, age file systems, and try designs in a laboratory.

    import fsage

    w = fsage.Workload("web.workload")
    answer = fsage.predict(w, ["ext4", "xfs", "btrfs"], cache="4G")
    answer.ranking.to_polars()

    with fsage.lab("ffs:realloc,size=502M@st32430n") as lab:
        lab.write("a", "1M")
        lab.now

Times are nanoseconds (`_ns`), sizes are bytes (`_bytes`), shares are between 0 and 1. Arguments that are sizes or durations may be written as
on the command line: ``"16G"``, ``"50us"``. Tables are Arrow: polars, pandas, pyarrow and DuckDB take them without a copy. Every exception
is an `Error`, by whose fault it is. docs/python.md has all of it by task.
"""

from __future__ import annotations

from ._fsage import Table, __version__
from .commands import Result, age, binary, experiments, measure, record, replay, reproduce, run, validate
from .errors import CallError, CheckError, Error, HostError, InputError, Interrupted, UsageError
from .laboratory import Lab, LabFile, lab
from .plans import DAY_NS, Aged, Operation, Plan, write_plan
from .predictions import Explanation, Prediction, explain, predict, priced_calls
from .surveys import Survey, survey
from .systems import System
from .workloads import Workload

__all__ = [
    "DAY_NS",
    "Aged",
    "CallError",
    "CheckError",
    "Error",
    "Explanation",
    "HostError",
    "InputError",
    "Interrupted",
    "Lab",
    "LabFile",
    "Operation",
    "Plan",
    "Prediction",
    "Result",
    "Survey",
    "System",
    "Table",
    "UsageError",
    "Workload",
    "__version__",
    "age",
    "binary",
    "experiments",
    "explain",
    "lab",
    "measure",
    "predict",
    "priced_calls",
    "record",
    "replay",
    "reproduce",
    "run",
    "survey",
    "validate",
    "write_plan",
]
