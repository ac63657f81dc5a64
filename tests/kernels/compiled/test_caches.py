"""Folders of compiled code: nobody but the user may write to them."""

import multiprocessing
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.program import ROOT, run_python

from multigpu.kernels.compiled import caches

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


NEITHER = (
    "multigpu: compiled %s are neither loaded nor kept, as others may write to {}: let nobody else"
    " write there and remove {}, as what is in it may be theirs ("
)
OF_YOUR_OWN = " may name a folder of your own)"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that others can enter, as `tmp_path` is not."""
    folder = Path(tempfile.mkdtemp(prefix="multigpu-test-")).resolve()
    folder.chmod(0o755)
    if any(not part.stat().st_mode & 0o001 for part in folder.parents):
        pytest.skip(f"nobody else can reach {folder}")
    yield folder
    shutil.rmtree(folder)


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def secure(monkeypatch: pytest.MonkeyPatch, folder: object) -> None:
    """Secure CuPy's cache, which is to be in a folder."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    monkeypatch.setenv(caches.IN_MEMORY, "0")
    caches.secure_cupy()


def refused(folder: Path, problem: str) -> None:
    with pytest.raises(caches.Exposed, match=problem):
        caches.private(folder)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folder__is_made_for_its_owner_alone(place: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        made = caches.private(place / "a" / "b")
    finally:
        os.umask(before)
    assert made == place / "a" / "b"
    assert (mode(made), mode(made.parent)) == (0o700, 0o700)


@pytest.mark.parametrize(("outer", "inner", "open_folder"), [
    (0o755, 0o755, ""),  # others may read: it is closed
    (0o755, 0o777, "a"),
    (0o755, 0o1777, "a"),
    (0o755, 0o757, "a"),
    (0o777, 0o700, "."),  # others may put another in its place,
    (0o1777, 0o700, ""),  # which they cannot in a folder as /tmp
    (0o700, 0o777, ""),  # nobody else gets there
])  # fmt: skip
def test_folder__that_others_may_write_or_replace_is_refused_and_left_as_it_is(
    place: Path, outer: int, inner: int, open_folder: str
) -> None:
    folder = place / "a"
    folder.mkdir()
    folder.chmod(inner)
    place.chmod(outer)
    if not open_folder:
        assert mode(caches.private(folder)) == 0o700
        return
    refused(folder, f"^others may write to {place / open_folder}: let nobody")
    assert mode(folder) == inner


@as_root
def test_folder__of_other_users_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the group is the user's own."""
    (place / "a").mkdir()
    os.chown(place / "a", 65534, 65534)
    for folder in (place / "a", place / "a" / "b"):
        refused(folder, f"^{place}/a belongs to another user: let nobody")
    os.chown(place / "a", 0, 65534)
    (place / "a").chmod(0o775)
    refused(place / "a", "others may write")
    monkeypatch.setattr(caches, "_is_own_group", lambda number: number == 65534)
    assert mode(caches.private(place / "a")) == 0o700


@as_root
@pytest.mark.parametrize("kind", ["file", "folder", "link", "file within"])
def test_folder__in_which_another_user_has_put_something_is_refused(place: Path, kind: str) -> None:
    """The stranger's code is there, whoever may write now."""
    (place / "a" / "b").mkdir(parents=True)
    theirs = place / "a" / ("b/theirs" if kind == "file within" else "theirs")
    make = {"folder": Path.mkdir, "link": lambda path: path.symlink_to(place / "a" / "b")}
    make.get(kind, Path.touch)(theirs)
    os.chown(theirs, 65534, 65534, follow_symlinks=False)
    for mask in (0o777, 0o755, 0o700):
        (place / "a").chmod(mask)
        problem = f"others may write to {place}/a" if mask == 0o777 else f"{theirs} belongs to ano"
        refused(place / "a", problem)
    shutil.rmtree(place / "a")  # the cure
    assert caches.private(place / "a") == place / "a"


def test_folder__behind_a_link_is_the_one_that_it_leads_to(place: Path) -> None:
    (place / "there").mkdir(0o755)
    (place / "link").symlink_to(place / "there")
    assert caches.private(place / "link" / "a") == place / "there" / "a"


def test_own_group__has_the_users_name_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    user = caches.pwd.getpwuid(os.geteuid()).pw_name
    members = {1: (user, []), 2: (user, [user]), 3: (user, [user, "mallory"]), 4: ("lab", [])}
    groups = {n: SimpleNamespace(gr_name=name, gr_mem=mem) for n, (name, mem) in members.items()}
    monkeypatch.setattr(caches, "getgrgid", groups.__getitem__)
    assert [number for number in range(5) if caches._is_own_group(number)] == [1, 2]


# ---- who uses them ------------------------------------------------------------------------------


def compiled(cache: Path, module: Path) -> tuple[str, str]:
    """`answer(1)` of a module, compiled; whether it was in the cache; and what is said."""
    code = f"import {module.stem} as m; print(m.answer(1), sum(m.answer.stats.cache_hits.values()))"
    paths = os.pathsep.join([str(module.parent), str(ROOT)])
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": paths}
    ended = run_python("-B", "-c", code, env=environment)
    return ended.out, ended.all_err


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "one_function.py"
    path.write_text(
        "from multigpu.kernels.compiled.jit import jit\n\n"
        "@jit\ndef answer(x: int) -> int:\n    return x + 41\n"
    )
    return path


@pytest.mark.process
def test_functions__are_kept_in_a_folder_of_the_user_alone(place: Path, module: Path) -> None:
    cache = place / "cache"
    cache.mkdir(0o755)
    assert [compiled(cache, module) for _ in range(2)] == [("42 0\n", ""), ("42 1\n", "")]
    (folder,) = (cache / "multigpu").iterdir()
    assert mode(folder) == 0o700
    assert list(folder.rglob("*.nbc"))
    files = sorted(cache.rglob("*"))
    (cache / "multigpu").chmod(0o777)
    said = NEITHER.format(cache / "multigpu", folder).replace("%s", "functions")
    assert compiled(cache, module) == ("42 0\n", f"{said}NUMBA_CACHE_DIR{OF_YOUR_OWN}\n")
    assert sorted(cache.rglob("*")) == files


@pytest.mark.process
def test_warning__comes_once_for_the_functions_of_all_packages(place: Path) -> None:
    (place / "multigpu").mkdir()
    (place / "multigpu").chmod(0o777)
    code = "import multigpu.kernels.compiled.fragments, multigpu.kernels.bases"
    said = run_python("-c", code, env={"NUMBA_CACHE_DIR": str(place)}).all_err
    assert said.count("multigpu: compiled functions are neither loaded nor kept") == 1


def warned(_: int) -> None:
    caches.warn("functions", "others may write to /a", "NUMBA_CACHE_DIR")


@pytest.mark.process
def test_warning__comes_from_the_first_process_only(caplog: pytest.LogCaptureFixture) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(warned, [1])
    assert not caplog.records


@as_root
def test_kernels__that_another_user_has_put_there_are_not_loaded(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (place / "kernel.cubin").touch()
    os.chown(place / "kernel.cubin", 65534, 65534)
    secure(monkeypatch, place)
    assert os.environ[caches.IN_MEMORY] == "1"
    assert f"as {place}/kernel.cubin belongs to another user: " in caplog.text


@pytest.mark.parametrize("others", [0o000, 0o022])
def test_kernels__are_kept_in_memory_where_others_may_write(
    place: Path, others: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = place / "kernels"
    folder.mkdir()
    folder.chmod(0o755 | others)
    secure(monkeypatch, folder)
    assert os.environ[caches.IN_MEMORY] == ("1" if others else "0")
    said = NEITHER.format(folder, folder).replace("%s", "GPU kernels")
    assert caplog.messages == ([f"{said}CUPY_CACHE_DIR{OF_YOUR_OWN}"] if others else [])
    assert mode(folder) == 0o755 | others  # it is not ours to change


@pytest.mark.parametrize("kind", ["a file", "below a file", "no home"])
def test_kernels__are_kept_in_memory_where_nothing_can_be_written(
    place: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (place / "file").write_text("")
    folder = {"a file": place / "file", "below a file": place / "file" / "x"}.get(kind, "")
    monkeypatch.setenv("HOME", "/dev/null")
    secure(monkeypatch, folder)
    caches.secure_cupy()
    assert os.environ[caches.IN_MEMORY] == "1"
    own = Path(os.environ["CUPY_CACHE_DIR"])
    assert mode(own) == 0o700  # CuPy makes its folder when it is imported
    assert len(caplog.messages) == 1
    assert "neither loaded nor kept" in caplog.text
    assert str(folder or "/dev/null") in caplog.text
    own.rmdir()
