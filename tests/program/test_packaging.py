"""What is installed: one package, complete, that lives beside others of the names of its parts."""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from support.program import ROOT, run_python

from multigpu import __version__

FOREIGN = ("kernels", "cluster")  # published packages of other people have these names
ROWS = "sample\tsignature\tstart\tend\tstrand\tscore\nr\tsig\t2\t6\t+\t40.0\n"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files, links as links, without those that are removed by now."""
    folder = tmp_path_factory.mktemp("checkout")
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    copy = f"git ls-files -z | tar -c --null -T - --ignore-failed-read | tar -x -C {folder}"
    subprocess.run(copy, shell=True, cwd=ROOT, check=True)
    return folder


def built(checkout: Path, kind: str, folder: Path) -> Path:
    """Return the wheel or sdist that setuptools makes of a checkout."""
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(folder)!r}))"
    ended = run_python("-c", code, cwd=checkout, env={"PYTHONPATH": ""})
    assert ended.status == 0, ended.err[-2000:]
    return folder / ended.out.split()[-1]


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, "wheel", tmp_path_factory.mktemp("wheel"))


def kernel_sources() -> set[str]:
    paths = [path for path in (ROOT / "kernels").rglob("*") if path.suffix in (".cu", ".cuh")]
    return {f"multigpu/{path.relative_to(ROOT)}" for path in paths}


def test_versions__agree(wheel: Path) -> None:
    assert wheel.name.startswith(f"multigpu-{__version__}-")
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    # Ruff has one, too.
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (version,) = re.findall(r"rev: v([0-9.]+)\n", hooks)
    assert f"\nruff=={version} " in (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")


def test_wheel__has_one_package_with_everything(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in names} == {"multigpu"}
    assert kernel_sources()
    assert kernel_sources() <= names
    assert {"multigpu/cluster/deploy/__init__.py", "multigpu/kernels/compiled/jit.py"} <= names


def test_wheel__has_nothing_that_lies_beside(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    """As by `make demo` and by runs in the checkout."""
    clone = tmp_path / "clone"
    shutil.copytree(checkout, clone, symlinks=True)
    for folder in ("multigpu-demo/calls/figures", "multigpu_results", "multigpu.out", "out"):
        (clone / folder).mkdir(parents=True)
        for name in ("matches.tsv", "report.html", "notes.txt", "extra.py"):
            (clone / folder / name).write_text("result\n")
    again = zipfile.ZipFile(built(clone, "wheel", tmp_path)).namelist()
    assert sorted(again) == sorted(zipfile.ZipFile(wheel).namelist())


def test_sdist__builds_the_same_wheel(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    archive = built(checkout, "sdist", tmp_path)
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path], check=True)  # Python's needs 3.11.4
    again = built(tmp_path / archive.name.removesuffix(".tar.gz"), "wheel", tmp_path)
    contents = [
        {n: file.read(n) for n in file.namelist() if not n.endswith("/RECORD")}
        for file in (zipfile.ZipFile(wheel), zipfile.ZipFile(again))
    ]
    assert contents[0].keys() == contents[1].keys()
    assert contents[0] == contents[1]


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program installed beside other people's packages of the names of its parts."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    for name in FOREIGN:
        assert not (site / name).exists()
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"WHOSE = 'the other {name}'\n")
    return site


def run(site: Path, folder: Path, *arguments: str) -> str:
    """Return what a Python that finds the modules in `site` prints."""
    folder.mkdir(exist_ok=True)
    ended = run_python(*arguments, cwd=folder, env={"PYTHONPATH": str(site)}, timeout=280)
    assert ended.status == 0, ended.err
    return ended.out


def test_foreign_packages__go_on_working(site: Path, tmp_path: Path) -> None:
    code = (
        "import kernels, cluster, multigpu, multigpu.kernels.scan, multigpu.cluster.engine.plan;"
        "print(kernels.WHOSE, cluster.WHOSE, multigpu.__file__)"
    )
    out = run(site, tmp_path, "-c", code)
    assert out == f"the other kernels the other cluster {site}/multigpu/__init__.py\n"


def scan_of(folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "s.fastq").write_text("@r\nTTACGTAA\n+\nIIIIIIII\n")
    (folder / "g.fasta").write_text(">sig\nACGT\n")
    return ["-m", "multigpu", "scan", "s.fastq", "-s", "g.fasta", "--gpus", "none", "--quiet"]


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["threads", "processes"])
def test_scan__runs_beside_such_files(site: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    command = scan_of(tmp_path)
    for name in FOREIGN:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong file was imported')\n")
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong folder')\n")
    assert run(site, tmp_path, *command, *more) == ROWS


def test_checkout__runs_without_an_installation(checkout: Path, tmp_path: Path) -> None:
    command = ["plan", *scan_of(tmp_path)[2:-1]]
    assert "signatures    1" in run(checkout, tmp_path, "-m", "multigpu", *command)
