"""The wheel, built from the files that .dockerignore admits to the image: complete with and without a compiler.

The source distribution has what a build of the same wheel needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = tuple(sorted(link.name for link in (REPOSITORY / "barnabas").iterdir() if link.is_symlink()))
SPARK_HOOK = "pyspark_barnabas"
# The files of the image's build context: the image is complete only if a wheel built from exactly these is.
SOURCES = tuple(line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!"))
KERNEL = "barnabas/protocol/records/kernels/_kernel"
BUILD_TIMEOUT_S = 280


def has_compiler() -> bool:
    return shutil.which("cc") is not None and (Path(sysconfig.get_path("include")) / "Python.h").exists()


def copy_sources(directory: Path) -> Path:
    """Copy what the image is built from, so that the repository stays clean."""
    source = directory / "source"
    source.mkdir(parents=True)
    leave_out = shutil.ignore_patterns("__pycache__", "*.so", "*.c")
    for name in SOURCES:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, source / name, symlinks=True, ignore=leave_out)
        else:
            shutil.copy(REPOSITORY / name, source / name)
    return source


def reuse_kernels(source: Path) -> None:
    """Give the build what the installation in this repository has compiled, except for one kernel.

    Compiling all of them takes 40 s of CPU. The build compiles again where a source is newer.
    """
    built = source / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for kernel in kernels():
        library = REPOSITORY / f"{kernel}{EXTENSION_SUFFIXES[0]}"
        code = REPOSITORY / f"{kernel}.c"
        if f"barnabas/{kernel}" != KERNEL and library.exists() and code.exists():
            shutil.copy2(code, source / f"{kernel}.c")
            (built / "barnabas" / kernel).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, built / "barnabas" / kernel.parent / library.name)


def kernels() -> list[Path]:
    """Return the paths of all kernels in the repository, without a suffix."""
    found = [path for folder in ("broker", "protocol") for path in (REPOSITORY / folder).rglob("kernels/_*.pyx")]
    return [path.relative_to(REPOSITORY).with_suffix("") for path in found]


def build_wheel(source: Path, directory: Path, **environ: str) -> Path:
    """Build a wheel of `source` in `directory`."""
    build("--wheel", source, directory, **environ)
    (wheel,) = directory.glob("*.whl")
    return wheel


def build(kind: str, source: Path, directory: Path, **environ: str) -> None:
    done = subprocess.run(
        # Without a check of the build's requirements, for which it would run setup.py, and Cython, once more.
        [sys.executable, "-m", "build", kind, "--no-isolation", "--skip-dependency-check", "--outdir", str(directory)],
        cwd=source,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def unpacked_version(wheel: Path, directory: Path) -> str:
    """Return the output of `python -m barnabas --version` with only the unpacked wheel on the path."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    program = (
        f"import sys; sys.path.insert(0, {str(directory)!r})\n"
        "import barnabas; assert barnabas.__file__.startswith(sys.path[0]), barnabas.__file__\n"
        "sys.argv = ['barnabas', '--version']; import runpy; runpy.run_module('barnabas', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def quick_compiler(directory: Path) -> dict[str, str]:
    """Return the environment for a compiler that does not optimize, which takes a tenth of the time."""
    compiler = directory / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0 -g0\n')
    compiler.chmod(0o755)
    return {"CC": str(compiler)} if has_compiler() else {}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    source = copy_sources(directory)
    reuse_kernels(source)
    return build_wheel(source, directory, **quick_compiler(directory))


def test_the_wheel_holds_every_module_of_the_tree_and_none_of_the_tests(wheel: Path) -> None:
    modules = {
        f"barnabas/{path.relative_to(REPOSITORY)}" for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py")
    }
    modules |= {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / SPARK_HOOK).rglob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(".py")}

    assert packed == modules | {"barnabas/__init__.py", "barnabas/__main__.py"}


def test_the_wheel_holds_the_type_marker_the_shipped_properties_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (entry_points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        commands = archive.read(entry_points).decode()

    assert {"barnabas/py.typed", "barnabas/config/server.properties", f"{KERNEL}.pyi"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert "barnabas = barnabas.commands.entry:main" in commands
    assert "[pytest11]\nbarnabas = barnabas.clients.pytest_plugin\n" in commands


@pytest.mark.skipif(not has_compiler(), reason="no C compiler with Python's headers: the kernel is not compiled here")
def test_with_a_compiler_the_wheel_holds_the_kernels_and_runs_them(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        libraries = {name for name in archive.namelist() if name.endswith(".so")}

    assert libraries == {f"barnabas/{kernel}{EXTENSION_SUFFIXES[0]}" for kernel in kernels()}
    assert "compiled kernel" in unpacked_version(wheel, tmp_path)


def test_without_a_compiler_the_wheel_still_builds_and_runs_the_python_kernel(wheel: Path, tmp_path: Path) -> None:
    built = shutil.ignore_patterns("build", "*.egg-info")  # all but the C files that Cython has written
    source = shutil.copytree(wheel.parent / "source", tmp_path / "source", symlinks=True, ignore=built)
    missing = str(tmp_path / "no-compiler")
    without = build_wheel(source, tmp_path / "build", CC=missing, CXX=missing)

    with zipfile.ZipFile(without) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
    assert "python kernel" in unpacked_version(without, tmp_path / "unpacked")


def test_the_source_distribution_holds_every_file_of_the_wheel_and_every_kernel_source(
    wheel: Path, tmp_path: Path
) -> None:
    build("--sdist", wheel.parent / "source", tmp_path)
    (archive_path,) = tmp_path.glob("barnabas-*.tar.gz")
    with tarfile.open(archive_path) as archive:
        packed = {member.name.partition("/")[2]: member for member in archive.getmembers() if member.isfile()}
        settings = archive.extractfile(packed["setup.py"])
        assert settings is not None
        assert settings.read().decode() == (REPOSITORY / "setup.py").read_text()
    with zipfile.ZipFile(wheel) as built:
        needed = {name for name in built.namelist() if not name.endswith(".so") and ".dist-info/" not in name}
    sources = {
        f"barnabas/{path.relative_to(REPOSITORY)}"
        for kernel in kernels()
        for path in (REPOSITORY / kernel).parent.iterdir()
        if path.suffix in (".pyx", ".pxd", ".h")
    }

    assert len(needed) > 600
    assert len(sources) >= len(kernels())
    assert needed | sources <= set(packed)


def test_setup_finds_the_kernels_without_the_folders_beside_barnabas(tmp_path: Path) -> None:
    """A source distribution has barnabas/ only."""
    shutil.copy(REPOSITORY / "setup.py", tmp_path)
    for kernel in kernels():
        copied = tmp_path / "barnabas" / f"{kernel}.pyx"
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.touch()
    program = (
        "import runpy, setuptools, Cython.Build\n"
        "Cython.Build.cythonize = lambda extensions, **_: extensions\n"
        "setuptools.setup = lambda **_: None\n"
        "print(*sorted(e.sources[0] for e in runpy.run_path('setup.py')['extensions']), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout.split() == sorted(f"barnabas/{kernel}.pyx" for kernel in kernels()), done.stderr
