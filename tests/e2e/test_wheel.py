"""What `pip install callmark` brings: the package with its data, and nothing of the checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def test_the_wheel_holds_only_the_package(names):
    heads = {name.partition("/")[0] for name in names}
    assert {head for head in heads if not head.endswith(".dist-info")} == {"callmark"}


def test_the_wheel_holds_every_source_and_data_file(names):
    source = ROOT / "src" / "callmark"
    wanted = {
        f"callmark/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= names


def test_the_wheel_holds_the_licence_and_the_command(names):
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert any(name.endswith("/entry_points.txt") for name in names)
