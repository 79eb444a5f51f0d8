"""Tables go to other libraries without a copy: the buffers have the same addresses there."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import fsage

pa = pytest.importorskip("pyarrow")


def addresses(column: Any) -> list[int]:
    """Where the values of each chunk of an Arrow column lie in memory."""
    return [chunk.buffers()[1].address for chunk in column.chunks]


def test_pyarrow_sees_the_same_buffers_each_time(workload: fsage.Workload) -> None:
    table = workload.calls(["seq", "t_ns", "dur_ns"])
    first, second = pa.table(table), pa.table(table)
    assert len(first) == len(table) == workload.events > 10_000
    for name in first.column_names:
        # Two copies would lie in two places.
        assert addresses(first.column(name)) == addresses(second.column(name))


def test_polars_sees_the_same_buffers(workload: fsage.Workload) -> None:
    pl = pytest.importorskip("polars")
    table = workload.calls(["seq", "dur_ns"])
    ours = addresses(table.to_arrow().column("dur_ns"))
    frame = table.to_polars()
    theirs = [chunk.to_arrow().buffers()[1].address for chunk in frame["dur_ns"].get_chunks()]
    assert theirs == ours
    assert frame["dur_ns"].sum() == sum(table.column("dur_ns"))
    assert isinstance(frame, pl.DataFrame)


def test_pandas_sees_the_same_buffers(workload: fsage.Workload) -> None:
    pytest.importorskip("pandas")
    table = workload.calls(["seq", "dur_ns"])
    frame = table.to_pandas()
    theirs = addresses(pa.chunked_array(frame["dur_ns"].array.__arrow_array__()))
    assert theirs == addresses(table.to_arrow().column("dur_ns"))


def test_duckdb_reads_it_where_it_lies(workload: fsage.Workload) -> None:
    """DuckDB scans the Arrow stream that it is given, whose buffers are those of the table; its answers are
    Python's."""
    duckdb = pytest.importorskip("duckdb")
    calls = workload.calls(["op", "dur_ns"])
    stream = pa.RecordBatchReader.from_stream(calls)
    found = duckdb.sql("SELECT op, count(*) AS n, sum(dur_ns) AS ns FROM stream GROUP BY op ORDER BY op").fetchall()
    expected: dict[str, list[int]] = {}
    for op, ns in zip(calls.column("op"), calls.column("dur_ns")):
        count = expected.setdefault(op, [0, 0])
        count[0] += 1
        count[1] += ns
    assert [(op, n, int(ns)) for op, n, ns in found] == [(op, n, ns) for op, (n, ns) in sorted(expected.items())]


def test_buffers_outlive_the_table(workload: fsage.Workload) -> None:
    table = workload.calls(["dur_ns"])
    expected = sum(table.column("dur_ns"))
    arrow = table.to_arrow()
    del table
    gc.collect()
    assert arrow.column("dur_ns").to_numpy().sum() == expected


def test_an_unused_capsule_frees_what_it_holds(workload: fsage.Workload) -> None:
    table = workload.calls(["dur_ns"])
    for _ in range(100):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()
    assert sum(pa.table(table).column("dur_ns").to_pylist()) == sum(table.column("dur_ns"))


def test_what_python_makes_of_it_is_what_arrow_makes_of_it(workload: fsage.Workload) -> None:
    table = workload.calls()
    arrow = pa.table(table)
    assert arrow.column_names == table.column_names
    for name in table.column_names:
        assert arrow.column(name).to_pylist() == table.column(name), name
    short = workload.names()
    assert pa.table(short).to_pylist() == short.to_dicts()


def test_rows_of_any_shape_become_columns() -> None:
    table = fsage.Table.from_json(
        '[{"a": 1, "b": {"low": 1.5}, "l": [1, 2], "m": "x", "u": 18446744073709551615},'
        ' {"a": -2, "b": {"low": 2}, "m": 3, "t": true}]'
    )
    assert table.to_dicts() == [
        {"a": 1, "b_low": 1.5, "l": [1.0, 2.0], "m": '"x"', "u": 18446744073709551615, "t": None},
        {"a": -2, "b_low": 2.0, "l": [], "m": "3", "u": None, "t": True},
    ]
    assert pa.table(table).column("u").to_pylist() == [18446744073709551615, None]
    empty = fsage.Table.from_json("[]")
    assert len(empty) == 0 and empty.column_names == [] and empty.to_dicts() == []
    with pytest.raises(fsage.UsageError):
        fsage.Table.from_json("{")
    with pytest.raises(fsage.UsageError, match="there are a, "):
        table.column("none")


def test_a_column_that_is_not_there_is_named(workload: fsage.Workload) -> None:
    with pytest.raises(fsage.InputError, match="latency.*there are seq"):
        workload.calls(["latency"])
