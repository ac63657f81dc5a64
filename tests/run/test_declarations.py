"""An option is one field: from it come the option, the keyword, the check, help and docstring."""

import inspect
import pickle
import pydoc
import re
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import numpy as np
import pytest
from click.testing import CliRunner

import multigpu
from multigpu.errors import InputError, TooLittleMemory, UsageError, option, options_spelled
from multigpu.formats.alignments.regions import windows
from multigpu.run.command import Reporting, command_of
from multigpu.run.declarations import Options, declaration, declare, flag, function_of
from multigpu.run.values import Bytes, FilePath, NameList, Paths, Vector, count_or_share
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.scan.simulate import signatures


@dataclass(frozen=True)
class Brew(Options, group="Search"):
    """A request with an option of each kind."""

    leaves: Paths = field(metadata=declaration("Leaves to use.", argument=True))
    _: KW_ONLY
    minutes: int = declare(
        3, f"Minutes to wait, unless {option('cold')}.", at_least=1, at_most=10, r="t"
    )
    degrees: float | None = declare(None, "Heat.", unit="°", above=0, at_most=100, default="hot")
    cold: bool = declare(False, "Use cold water.", also=("iced",))
    lid: bool = declare(True, "Close the lid.")
    pot: Literal["glass", "clay"] = declare("clay", "What it is in.", short="p")
    strength: Literal[1, 2] = declare(1, "How strong.")
    water: Bytes | None = declare(None, "How much.", default="enough")
    milk: Annotated[int | float, count_or_share("cup")] = declare(0, "How much.")
    guests: NameList = declare((), "Who drinks.")
    table: Vector | None = declare(None, "Where.", example="1,2,3")
    recipe: FilePath | None = declare(None, "What to follow.", flag="follow")


@function_of(Brew)
def brew(request: Brew) -> Brew:
    """Return tea.

    {options}
    """
    return request


@command_of(example="brew green")
def command(request: Brew, reporting: Reporting) -> None:
    """Make tea."""
    shown.append(request)


shown: list[Brew] = []


def type_in(words: str) -> Any:
    """Return the request of a command line, or what is said about it."""
    with options_spelled(flag):
        try:
            command.main(words.split(), standalone_mode=False)
        except click.ClickException as error:
            return error.format_message()
        except UsageError as error:
            return str(error)
    return shown.pop()


@pytest.mark.parametrize(("words", "keywords"), [
    ("", {}),
    ("--minutes 5 --cold --no-lid -p glass", {
        "minutes": 5, "cold": True, "lid": False, "pot": "glass"}),
    ("--strength 2 --water 2K --milk 0.5", {"strength": 2, "water": 2048, "milk": 0.5}),
    (f"--water {10**30}", {"water": 10**30}),
    ("--guests a,b --table 1,2,3 --follow x", {
        "guests": ["a", "b"], "table": [1, 2, 3], "recipe": "x"}),
])  # fmt: skip
def test_both_doors__make_the_same_request(words: str, keywords: dict[str, Any]) -> None:
    typed, called = type_in(f"green {words}"), brew(("green",), **keywords)
    assert typed == called
    assert typed.given == called.given == {"leaves", *keywords}
    assert brew("green", iced=True).cold  # type: ignore[call-arg]


@pytest.mark.parametrize(("keywords", "problem"), [
    ({"minutes": 11}, "{} is 11; it must be 1 to 10"),
    ({"degrees": 0.0}, "{} is 0°; it must be above 0, at most 100"),
    ({"degrees": float("nan")}, "{} is nan°; it must be above 0, at most 100"),
    ({"milk": -1}, "{} is -1; it must be a whole number of bases, e.g. 2, or a share of the cup"),
])  # fmt: skip
def test_wrong_values__are_said_as_they_are_spelt(keywords: dict[str, Any], problem: str) -> None:
    ((name, value),) = keywords.items()
    assert type_in(f"green --{name} {value}").startswith(problem.format(f"--{name}"))
    with pytest.raises(UsageError, match=f"^{re.escape(problem.format(name))}"):
        brew("green", **keywords)


@pytest.mark.parametrize(("keywords", "problem"), [
    ({"minutes": 1.5}, "minutes is 1.5; it must be a whole number"),
    ({"minutes": None}, "minutes is None; it must be a whole number"),
    ({"cold": "yes"}, "cold is 'yes'; it must be False or True"),
    ({"pot": "tin"}, "pot is 'tin'; it must be glass or clay"),
    ({"strength": "1"}, "strength is '1'; it must be 1 or 2"),
    ({"table": (1, 2)}, "table is (1, 2); it must be 3 numbers"),
    ({"recipe": 7}, "recipe is 7; it must be a path"),
])  # fmt: skip
def test_values_of_another_kind__are_refused(keywords: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(problem)}$"):
        brew("green", **keywords)


@pytest.mark.parametrize(("words", "problem"), [
    ("--water 2X", "'--water': '2X' is no number of bytes: give one like 25000 or 64M"),
    ("--table 1,2", "'--table': expected X,Y,Z, e.g. --table 1,2,3; got '1,2'"),
    ("--milk much", "'--milk': 'much' is neither a number of bases, e.g. 2, nor a"),
    ("--pot tin", "'--pot': 'tin' is not one of 'glass', 'clay'"),
])  # fmt: skip
def test_texts_that_mean_nothing__are_refused(words: str, problem: str) -> None:
    assert problem in type_in(f"green {words}")


def test_help__has_groups_and_an_example() -> None:
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "Search: --minutes N Minutes to wait, unless --cold. [default: 3] [R: t]" in text
    assert "--lid / --no-lid Close the lid. [default: --lid]" in text
    assert text.index("Search:") < text.index("Reporting: --log-json")
    assert text.endswith("Example: brew green")
    assert "minutes\n        Minutes to wait, unless cold.  [default: 3]" in (brew.__doc__ or "")


@pytest.mark.parametrize("kind", [UsageError, TooLittleMemory])
def test_errors__are_spelled_where_they_are_shown(kind: type[UsageError]) -> None:
    error = pickle.loads(pickle.dumps(kind(f"leave out {option('lid', on=False)}")))
    outer = InputError("a.tea", f"{error}")
    assert str(outer) == "a.tea: leave out lid=False"
    with options_spelled(flag):
        assert str(outer) == "a.tea: leave out --no-lid"


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
def test_help__describes_a_function_and_every_parameter(name: str) -> None:
    function = getattr(multigpu, name)
    text = pydoc.plain(pydoc.render_doc(function))
    assert re.search(rf"^{name}\(.*\n +Return ", text, re.MULTILINE)
    parameters = inspect.signature(function).parameters
    assert {"gpus", "workers", "resume", "client"} <= set(parameters)
    for each in parameters:
        assert re.search(rf"^ +{each}\n  +\w", text, re.MULTILINE), each
    assert not re.search("[\ue000\ue001]|{options}", text)


def test_signature__has_types_and_defaults() -> None:
    parameters = inspect.signature(multigpu.scan).parameters
    assert list(parameters)[:2] == ["samples", "signatures"]
    assert parameters["signatures"].kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters["hits"].kind == inspect.Parameter.KEYWORD_ONLY
    assert parameters["hits"].annotation == Literal["first", "best", "all", "top", "sites"]
    assert parameters["phred_offset"].default == 33


@named
def test_a_function__can_be_sent_to_another_process(name: str) -> None:
    function = getattr(multigpu, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_misspelt_keyword__is_looked_for_among_those_of_the_function() -> None:
    message = (
        r"^scan\(\) got an unexpected keyword argument 'min_scor'; did you mean 'min_score'\?$"
    )
    with pytest.raises(TypeError, match=message):
        call("scan", min_scor=1)
    with pytest.raises(TypeError, match="did you mean 'prior_impact'"):
        call("cnv", priorimpact=1)
    with pytest.raises(TypeError, match=r"argument 'zzzzzz'$"):
        call("dock", zzzzzz=1)
    with pytest.raises(TypeError, match=r"^dock\(\) missing a required argument: 'ligands'$"):
        multigpu.dock()  # type: ignore[call-arg]


@named
def test_workers__are_a_keyword_of_all(name: str) -> None:
    for former in ("workers", "processes"):
        with pytest.raises(multigpu.UsageError, match="missing: cannot be read"):
            call(name, **{former: 1})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"threads": -1}, r"^threads is -1; "),
        ({"workers": -1}, r"^workers is -1; "),
        ({"max_chunk_bytes": 0}, r"^max_chunk_bytes is 0; "),
        ({"scheduler": ""}, r"^scheduler and scheduler_file must not be empty"),
        ({"gpus": 70}, r"^there is no GPU 70: .*; or go without: gpus none"),
        ({"gpus": [70, 71]}, r"^there is no GPU 70: "),
        ({"gpus": True}, r"^gpus is True; it must be text"),
    ],
)
def test_errors__name_parameters(tmp_path: Path, given: dict[str, Any], problem: str) -> None:
    (tmp_path / "r.fa").write_text(">r\nACGTACGT\n")
    with pytest.raises(multigpu.UsageError, match=problem):
        multigpu.scan(tmp_path / "r.fa", tmp_path / "r.fa", **given)


def test_repr__is_one_short_line(tmp_path: Path, small_result: CnvResult) -> None:
    wanted = tmp_path / "signatures.fasta"
    with wanted.open("wb") as out:
        signatures(out, count=3, min_length=20, max_length=30, n_ratio=0, seed=1)
    found = multigpu.scan(wanted, wanted, gpus="none")
    batches = list(found)
    for value in (found, batches[0], small_result):
        assert re.fullmatch(r"<[^\n]{10,120}>", repr(value))
    assert "3 signatures" in repr(found)
    assert "CNVs" in repr(small_result)


@pytest.fixture
def small_result() -> CnvResult:
    values = np.random.default_rng(1).poisson(100, (40, 3)).astype(np.int32)
    counts = multigpu.Counts(windows([("chr1", 40_000)], 1000), ("a", "b", "c"), values)
    assert repr(counts) == "<Counts: 3 samples × 40 regions>"
    return multigpu.cnv(counts, gpus="none", keep_matrices=False)
