"""The Python functions as someone meets them who tries them: names, TAB, help and slips."""

import inspect
import pickle
import pydoc
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import multigpu
from multigpu.formats.alignments.regions import windows
from multigpu.workloads.scan.simulate import signatures

NAMES = ("scan", "count", "cnv", "dock")
named = pytest.mark.parametrize("name", NAMES)


def call(name: str, **keywords: Any) -> None:
    """Call a function with as many inputs as it needs; none of them exists."""
    inputs = ["missing"] * (1 if name in ("count", "cnv") else 2)
    getattr(multigpu, name)(*inputs, **keywords)


def test_dir__lists_what_is_imported_on_first_use() -> None:
    assert {"scan", "count", "cnv", "dock", "read_counts"} <= set(dir(multigpu))
    text = pydoc.plain(pydoc.render_doc(multigpu))
    for name in NAMES:
        assert re.search(rf"^ +multigpu\.{name}\(", text, re.MULTILINE), name


@named
def test_function__has_help_on_every_parameter_and_can_be_sent(name: str) -> None:
    function = getattr(multigpu, name)
    text = pydoc.plain(pydoc.render_doc(function))
    assert re.search(rf"^{name}\(.*\n +Return ", text, re.MULTILINE)
    parameters = inspect.signature(function).parameters
    assert {"gpus", "workers", "resume", "client"} <= set(parameters)
    for each in parameters:
        assert re.search(rf"^ +{each}\n  +\w", text, re.MULTILINE), each
    assert not re.search("[\ue000\ue001]|{options}", text)
    # It can be sent to another process.
    assert pickle.loads(pickle.dumps(function)) is function
    # Workers are a keyword of all.
    for former in ("workers", "processes"):
        with pytest.raises(multigpu.UsageError, match="missing: cannot be read"):
            call(name, **{former: 1})


def test_signature__has_types_and_defaults() -> None:
    parameters = inspect.signature(multigpu.scan).parameters
    assert list(parameters)[:2] == ["samples", "signatures"]
    assert parameters["signatures"].kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters["hits"].kind == inspect.Parameter.KEYWORD_ONLY
    assert parameters["hits"].annotation == Literal["first", "best", "all", "top", "sites"]
    assert parameters["phred_offset"].default == 33


def test_a_misspelt_keyword__is_looked_for_among_those_of_the_function() -> None:
    said = r"^scan\(\) got an unexpected keyword argument 'min_scor'; did you mean 'min_score'\?$"
    with pytest.raises(TypeError, match=said):
        call("scan", min_scor=1)
    with pytest.raises(TypeError, match="did you mean 'prior_impact'"):
        call("cnv", priorimpact=1)
    with pytest.raises(TypeError, match=r"argument 'zzzzzz'$"):
        call("dock", zzzzzz=1)
    with pytest.raises(TypeError, match=r"^dock\(\) missing a required argument: 'ligands'$"):
        multigpu.dock()  # type: ignore[call-arg]


@pytest.mark.parametrize(("given", "problem"), [
    ({"threads": -1}, r"^threads is -1; "),
    ({"workers": -1}, r"^workers is -1; "),
    ({"max_chunk_bytes": 0}, r"^max_chunk_bytes is 0; "),
    ({"scheduler": ""}, r"^scheduler and scheduler_file must not be empty"),
    ({"gpus": 70}, r"^there is no GPU 70: .*; or go without: gpus none"),
    ({"gpus": [70, 71]}, r"^there is no GPU 70: "),
    ({"gpus": True}, r"^gpus is True; it must be text"),
])  # fmt: skip
def test_errors__name_parameters(tmp_path: Path, given: dict[str, Any], problem: str) -> None:
    (tmp_path / "r.fa").write_text(">r\nACGTACGT\n")
    with pytest.raises(multigpu.UsageError, match=problem):
        multigpu.scan(tmp_path / "r.fa", tmp_path / "r.fa", **given)


def test_repr__is_one_short_line(tmp_path: Path) -> None:
    values = np.random.default_rng(1).poisson(100, (40, 3)).astype(np.int32)
    counts = multigpu.Counts(windows([("chr1", 40_000)], 1000), ("a", "b", "c"), values)
    assert repr(counts) == "<Counts: 3 samples × 40 regions>"
    small_result = multigpu.cnv(counts, gpus="none", keep_matrices=False)
    wanted = tmp_path / "signatures.fasta"
    with wanted.open("wb") as out:
        signatures(out, count=3, min_length=20, max_length=30, n_ratio=0, seed=1)
    found = multigpu.scan(wanted, wanted, gpus="none")
    batches = list(found)
    for value in (found, batches[0], small_result):
        assert re.fullmatch(r"<[^\n]{10,120}>", repr(value))
    assert "3 signatures" in repr(found)
    assert "CNVs" in repr(small_result)
