"""The laboratory as an object does what the command's laboratories do, in virtual time."""

from __future__ import annotations

import errno
import json
import subprocess
import threading
from pathlib import Path

import pytest

import fsage

TARGET = "ffs:size=32M@st32430n"


def test_files_are_made_written_read_and_removed() -> None:
    with fsage.lab(TARGET) as lab:
        begun = lab.now
        with lab.create("a") as f:
            assert f.write(b"hello") == 5
            assert f.write("64K") == 65536
            f.fsync()
            assert lab.took_ns > 0
            assert f.content(5) == b"hello"
            assert f.read(5, offset=0) == 5
        assert lab.now > begun
        assert lab.stat("a")["size_bytes"] == 65541
        lab.write("a", b"!")
        assert lab.read("a") == 65542
        lab.mkdir("d")
        lab.rename("a", "d/b")
        lab.link("d/b", "c")
        lab.symlink("d/b", "s")
        assert sorted(set(lab.listdir()) - {"lost+found"}) == ["c", "d", "s"]
        assert lab.stat("s", follow=False)["kind"] == "symlink" and lab.stat("s")["nlink"] == 2
        lab.truncate("c", "8K")
        assert lab.stat("d/b")["size_bytes"] == 8192
        for name in ("c", "s", "d/b"):
            lab.unlink(name)
        lab.rmdir("d")
        assert not set(lab.listdir()) - {"lost+found"}
    assert not lab.is_open
    with pytest.raises(fsage.UsageError, match="unmounted"):
        lab.now


def test_the_same_calls_take_the_same_time() -> None:
    def run() -> tuple[int, dict[str, object]]:
        with fsage.lab(TARGET) as lab:
            for n in range(20):
                lab.write(f"f{n}", 5000 * n)
            lab.drop_caches()
            for n in range(20):
                lab.read(f"f{n}")
            return lab.now, lab.counters

    assert run() == run()


def test_what_is_cached_is_faster_than_what_is_not() -> None:
    with fsage.lab(TARGET) as lab:
        lab.write("a", "256K")
        lab.sync()
        lab.drop_caches()
        before = lab.counters["device"]["read_bytes"]
        lab.read("a")
        cold = lab.took_ns
        assert lab.counters["device"]["read_bytes"] >= before + (256 << 10)
        lab.read("a")
        # A disk of 1995 reads some megabytes a second, and memory of then some tens.
        assert cold > 2 * lab.took_ns


def test_a_call_that_fails_is_an_oserror_with_its_number() -> None:
    with fsage.lab(TARGET) as lab:
        for call, number in (
            (lambda: lab.open("none"), errno.ENOENT),
            (lambda: lab.rmdir("none"), errno.ENOENT),
            (lambda: lab.directory("f"), errno.ENOTDIR),
            (lambda: lab.create("f"), errno.EEXIST),
        ):
            if number != errno.ENOENT and "f" not in lab.listdir():
                lab.create("f").close()
            with pytest.raises(OSError) as caught:
                call()
            assert isinstance(caught.value, fsage.CallError) and caught.value.errno == number, caught.value
        # A write that finds no more room says how far it came; the next one fails.
        assert lab.write("f", "64M") < 64 << 20
        with pytest.raises(fsage.CallError, match="ENOSPC") as full:
            lab.write("f", "1M")
        assert full.value.errno == errno.ENOSPC


def test_targets_that_make_no_sense_say_where() -> None:
    for wrong in ("ffs:sise=32M", "zfs", "ffs@no-such-drive", ""):
        with pytest.raises(fsage.Error):
            fsage.lab(wrong)
    with pytest.raises(fsage.UsageError, match="sise"):
        fsage.lab("ffs:sise=32M")


def test_a_duplicate_goes_its_own_way() -> None:
    with fsage.lab(TARGET) as lab:
        lab.write("a", "16K")
        with lab.duplicate() as other:
            assert other.now == lab.now
            other.unlink("a")
            assert lab.stat("a")["size_bytes"] == 16384
            assert other.now > lab.now


def test_pauses_are_time_in_which_the_syncer_works() -> None:
    with fsage.lab(TARGET) as lab:
        lab.write("a", "256K")
        before = lab.counters["device"]["write_bytes"]
        now = lab.now
        lab.pause("60s")
        assert lab.now - now == 60_000_000_000
        # Some of it went while it was written, and the rest by now.
        assert before < 256 << 10 <= lab.counters["device"]["write_bytes"]


def test_layout_is_that_of_the_command_on_the_image(tmp_path: Path) -> None:
    image = tmp_path / "ffs.img"
    with fsage.lab(TARGET) as lab:
        for n in range(12):
            lab.write(f"f{n}", 30_000)
        for n in range(0, 12, 2):
            lab.unlink(f"f{n}")
        lab.write("big", "2M")
        survey = lab.layout()
        extents = lab.extents("big").to_dicts()
        free = sum(lab.free_extents().column("len_bytes"))
        usage = lab.usage
        lab.unmount(image)
    assert sum(e["len_bytes"] for e in extents) == 2 << 20
    assert free == usage["free_bytes"]
    done = subprocess.run([fsage.binary(), "layout", image, "--json"], capture_output=True, text=True, check=True)
    theirs = fsage.Survey(json.loads(done.stdout))
    assert survey.layout_score == theirs.layout_score is not None
    assert survey.by_size.to_dicts() == theirs.by_size.to_dicts()
    # And of a snapshot that says where files lie.
    snapshot = [fsage.binary(), "snapshot", image, "--quiet", "-o"]
    subprocess.run([*snapshot, tmp_path / "listed.snapshot", "--blocks"], check=True)
    listed = fsage.survey(tmp_path / "listed.snapshot")
    assert listed.layout_score == theirs.layout_score
    assert listed.by_size.to_dicts() == theirs.by_size.to_dicts()
    subprocess.run([*snapshot, tmp_path / "plain.snapshot"], check=True)
    with pytest.raises(fsage.InputError, match="plain.snapshot.*--blocks"):
        fsage.survey(tmp_path / "plain.snapshot")
    with fsage.lab(f"ffs:image={image}") as again:
        assert again.stat("big")["size_bytes"] == 2 << 20


def test_a_log_is_a_laboratory_too() -> None:
    with fsage.lab("lfs:size=32M") as lab:
        lab.write("a", "1M")
        lab.sync()
        assert lab.layout().walked["files"] == 1


def test_a_plan_ages_it_as_the_command_does(tmp_path: Path) -> None:
    from test_files import growing

    with fsage.lab(TARGET) as lab:
        capacity = lab.usage["total_bytes"]
        plan = fsage.write_plan(tmp_path / "p.aging", growing(200), capacity=capacity)
        aged = lab.age(plan, survey_days=2)
        score = lab.layout().layout_score
        assert lab.layout().walked["files"] == plan.meta["counts"]["files_at_end"]
    assert len(aged.days) == plan.meta["days"] and len(aged.course) >= 3
    done = fsage.age(TARGET, plan, output=tmp_path / "out", options=["--survey-every", "2"])
    ours, theirs = aged.document, done.document
    for same in ("files", "file_bytes", "counters", "control_points", "deviation", "days_done"):
        assert ours[same] == theirs[same], same
    assert aged.course.column("layout_score")[-1] == pytest.approx(score)


def test_threads_take_turns() -> None:
    with fsage.lab(TARGET) as lab:
        def write(name: str) -> None:
            for _ in range(50):
                lab._own.stat("/", True)
            lab._own.mkdir(name, 0o755)

        threads = [threading.Thread(target=write, args=(f"d{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {"d0", "d1", "d2", "d3"} <= set(lab.listdir())


def test_no_argument_ends_python() -> None:
    """Content of a terabyte was asked for where there are 10 bytes: the allocation ended the process."""
    with fsage.lab("ffs:size=16M@st32430n") as lab:
        with lab.create("a") as f:
            f.write(b"0123456789")
            assert f.content("1T") == b"0123456789" and f.content(4, 8) == b"89"
            for wrong in (lambda: f.content(-1), lambda: f.read(1, -1), lambda: f.write(-1), lambda: f.write(1.5)):  # type: ignore[arg-type]
                with pytest.raises(fsage.UsageError):
                    wrong()
        for time in (-1, float("nan"), float("inf"), 1e30):
            with pytest.raises(fsage.UsageError, match="292 years"):
                lab.pause(time)


def test_an_image_that_is_there_stays(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_text("mine")
    with fsage.lab("ffs:size=16M@st32430n") as lab:
        with pytest.raises(fsage.UsageError, match="not overwritten"):
            lab.unmount(image)
        with pytest.raises(fsage.UsageError, match="no such directory"):
            lab.unmount(tmp_path / "none" / "disk.img")
        assert image.read_text() == "mine" and lab.is_open
        lab.unmount(tmp_path / "other.img")
    assert (tmp_path / "other.img").stat().st_size == 16 << 20
