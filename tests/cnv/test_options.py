"""The parameters: R's defaults, their names on the command line, what is refused."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
from support.golden_cnv import MODELS, OF_R_ALONE, OPTIONS, SEGMENTATIONS, load

from multigpu import UsageError
from multigpu.errors import spelled
from multigpu.workloads.cnv.command import command
from multigpu.workloads.cnv.options import CnvOptions, unused_parameter_notes

REFUSED = [
    ({"model": "other"}, "model is 'other'; it must be cn.mops or haplo"),
    ({"fold_changes": (1.0, 2.0)}, "2 fold_changes and 9 classes"),
    (
        {"segmentation": "hmm", "fold_changes": (0.5, 1.0), "classes": ("CN1", "CN2")},
        "segmentation hmm has the classes CN0, CN1, …: leave out classes",
    ),
    ({"segmentation": "hmm", "model": "single"}, "give segmentation fast"),
    ({"fold_changes": (1.0,), "classes": ("CN3",)}, "one of classes must be CN2"),
    ({"model": "haplo", "fold_changes": (1.0,), "classes": ("CN2",)}, "must be CN1"),
    ({"fold_changes": (1.0, 1.5), "classes": ("CN2", "CN2")}, "occurs twice"),
    ({"fold_changes": (1.0, 0.0), "classes": ("CN2", "CN0")}, "must be positive"),
    ({"min_width": 0}, "min_width is 0; it must be 1 to 2,147,483,647"),
    ({"upper": float("nan")}, "upper is nan; it must be a finite number"),
    ({"lower": -1e301}, "lower is -1e+301; it must be -1e+300 to 1e+300"),
    ({"upper": -2.0, "lower": 1.0}, "upper is -2 and lower 1: the threshold of gains lies"),
    ({"seg_median": (-1.0, 1.0)}, "seg_median is -1,1: the threshold of gains lies below"),
    ({"seg_median": (1.0, 2.0, 3)}, "seg_median is (1.0, 2.0, 3); it must be one number or two"),
    ({"seg_median": "0.3"}, "seg_median is '0.3'; it must be one number or two"),
    ({"fold_changes": 5}, "fold_changes is 5; it must be numbers"),
    ({"classes": 2}, "classes is 2; it must be a list of labels"),
    ({"classes": [2]}, "classes is [2]; it must be a list of labels"),
    ({"seg_median": (float("nan"), 0.0)}, "seg_median must be finite"),
]


def test_defaults__are_those_of_every_function_of_r(golden: Path) -> None:
    usual = {"cn.mops": "default", "haplocn.mops": "haplo_default", "exomecn.mops": "exome_default"}
    usual |= {"singlecn.mops": "single_granges", "referencecn.mops": "dnacopy_reference"}
    assert set(usual) == set(MODELS)
    for function, name in usual.items():
        options = CnvOptions.of(MODELS[function])
        for parameter, value in load(golden, name).facts["parameters"].items():
            if parameter in OF_R_ALONE | {"returnPosterior"}:
                continue
            ours = getattr(options, OPTIONS[parameter].replace("-", "_"))
            theirs = SEGMENTATIONS.get(value) if parameter == "segAlgorithm" else value
            assert (list(ours) if isinstance(ours, tuple) else ours) == theirs, parameter


def test_preset__is_the_parameter_set_of_the_thesis(golden: Path) -> None:
    options = CnvOptions.of("cn.mops", "gcnmops")
    parameters = load(golden, "thesis").facts["parameters"]
    for name in ("priorImpact", "cyc", "lowerThreshold", "minWidth", "minReadCount"):
        assert getattr(options, OPTIONS[name].replace("-", "_")) == parameters[name]


def test_given__wins_over_preset_and_model() -> None:
    options = CnvOptions.of("exome", "gcnmops", min_width=7, upper=None)
    assert (options.min_width, options.upper, options.prior_impact) == (7, 0.5, 10)
    options = CnvOptions.of("cn.mops", seg_median=-0.3, fold_changes=[1, 2], classes=["CN2", "CN4"])
    assert options.seg_median == (0.3, -0.3)
    assert (options.fold_changes, options.classes) == ((1.0, 2.0), ("CN2", "CN4"))
    assert CnvOptions(compat_r="r") == CnvOptions(compat_r=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_refused__with_the_option_and_the_value(given: dict[str, object], problem: str) -> None:
    chosen = {"model": "cn.mops", **given}
    with pytest.raises(UsageError) as error:
        CnvOptions.of(str(chosen.pop("model")), **chosen)  # type: ignore[arg-type]
    assert problem in str(error.value)


def unused(options: CnvOptions, given: Iterable[str]) -> list[str]:
    return [spelled(note) for note in unused_parameter_notes(options, list(given))]


def test_idle__parameters_of_the_fast_segmentation_with_another() -> None:
    cbs = CnvOptions.of("reference")
    assert unused(cbs, ["seg_median", "seed", "seg_alpha"]) == [
        "seg_alpha, seg_median have no effect: used only with segmentation fast"
    ]
    assert unused(cbs, ["seed"]) == unused(CnvOptions(), ["seg_alpha"]) == []


@pytest.mark.parametrize(("given", "what"), [
    ({"seed": 3}, "segmentation cbs"),
    ({"norm_quantile": 0.5}, "norm_type quant"),
    ({"size_factor_quantile": 0.5}, "size_factor quant"),
    ({"robust_min_width": 5}, "robust"),
    ({"segmentation": "hmm", "upper": 0.4}, "other segmentation than hmm"),
    ({"norm": 0, "norm_type": "mean"}, "counts that are normalized here"),
    ({"model": "single", "genome_wide": True}, "counts that are normalized here"),
])  # fmt: skip
def test_idle__parameters_without_what_they_are_for(given: dict[str, Any], what: str) -> None:
    options = CnvOptions.of(given.pop("model", "cn.mops"), **given)
    name = list(given)[-1]
    assert unused(options, given) == [f"{name} has no effect: used only with {what}"]


def test_command__names_every_parameter_of_r() -> None:
    helps = dict.fromkeys(OPTIONS.values(), "")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            helps[parameter.opts[0].removeprefix("--")] = parameter.help or ""
    missing = [name for name, option in OPTIONS.items() if f"[R: {name}]" not in helps[option]]
    assert missing == []
