"""`scripts/deflate-wheel`, which packs what `scripts/wheel` has made."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("zopfli")

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/deflate-wheel"


def a_wheel(path: Path) -> Path:
    """A wheel with a program, a text that stands in it many times, an empty file and a name that is not ASCII."""
    text = "".join(f"{n} {n * n} {n % 7}\n" for n in range(1_000))
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as wheel:
        for name, mode, content in [
            ("fsage/__init__.py", 0o644, ""),
            ("fsage-0.data/scripts/fsage", 0o755, text),
            ("fsage/größe.txt", 0o644, "a size\n"),
        ]:
            info = zipfile.ZipInfo(name, (1996, 1, 22, 10, 0, 0))
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, content)
    return path


def pack(path: Path) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(path)], check=True)


def test_only_the_size_changes(tmp_path: Path) -> None:
    as_made, packed = a_wheel(tmp_path / "a.whl"), a_wheel(tmp_path / "b.whl")
    pack(packed)
    assert packed.stat().st_size < as_made.stat().st_size
    with zipfile.ZipFile(as_made) as before, zipfile.ZipFile(packed) as after:
        assert after.testzip() is None
        assert len(after.infolist()) == 3
        for one, other in zip(before.infolist(), after.infolist()):
            assert before.read(one) == after.read(other)
            assert one.filename == other.filename
            assert one.date_time == other.date_time
            assert one.external_attr == other.external_attr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.whl", "b.whl"]


def test_the_same_wheel_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = a_wheel(tmp_path / "a.whl"), a_wheel(tmp_path / "b.whl")
    pack(one)
    pack(other)
    assert one.read_bytes() == other.read_bytes()
    # Packed again, as `scripts/wheel` does not, it stays what it is.
    pack(one)
    assert one.read_bytes() == other.read_bytes()


def test_what_is_no_wheel_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    path.write_bytes(b"no archive")
    done = subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True)
    assert done.returncode != 0
    assert path.read_bytes() == b"no archive"
    assert list(tmp_path.iterdir()) == [path]
