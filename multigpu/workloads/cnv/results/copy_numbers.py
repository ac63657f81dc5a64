"""Copy numbers of segments, as classes and as fractions, and their labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import NOT_CALLED, Floats, Indices, Mask, SegmentTable

MISSING = "NA"  # label of NOT_CALLED


def judged_value(segments: SegmentTable, options: CnvOptions) -> Floats:
    """Return the value by which each segment is judged: its mean or its median."""
    return segments.median if options.use_median else segments.mean


def is_beyond_threshold(segments: SegmentTable, options: CnvOptions) -> Mask:
    """Return which segments are gains or losses if they are large enough."""
    value = judged_value(segments, options)
    return (value >= options.upper) | (value <= options.lower)


def is_large(segments: SegmentTable, options: CnvOptions) -> Mask:
    """Return which segments have as many regions and bases as a CNV must have."""
    length = segments.end - segments.start
    return np.asarray((segments.rows >= options.min_width) & (length >= options.min_length))


def is_cnv(segments: SegmentTable, options: CnvOptions) -> Mask:
    """Return which segments are large enough and beyond a threshold."""
    return is_beyond_threshold(segments, options) & is_large(segments, options)


def integer_copy_numbers(
    segments: SegmentTable, classes: NDArray[Any], options: CnvOptions
) -> Indices:
    """Return the class of every segment, of which `cnv` tells the CNVs.

    classes  [CNVs, samples]: the model's class of the inner regions of every CNV

    Segments that are no CNVs have the main class. Where a segment beyond a threshold would have
    it, the next class in that direction is taken.
    """
    copy_number = np.full(len(segments), options.main, np.int32)
    copy_number[segments.cnv] = classes[np.arange(len(classes)), segments.sample[segments.cnv]]
    unchanged = copy_number == options.main
    gain, loss = neighbours(options)
    value = judged_value(segments, options)
    copy_number[unchanged & (value > options.upper)] = gain
    copy_number[unchanged & (value < options.lower)] = loss
    return copy_number


def direction(copy_number: Indices, options: CnvOptions) -> Indices:
    """Return the sign of each change from the main class, int32: -1, 0 or 1."""
    # The last one is that of NOT_CALLED.
    folds = np.array([*options.fold_changes, options.fold_changes[options.main]])
    return np.sign(folds[copy_number] - options.fold_changes[options.main]).astype(np.int32)


def neighbours(options: CnvOptions) -> tuple[int, int]:
    """Return the classes next to the main one: (more copies, fewer copies).

    R takes the classes that stand beside it in the list, whatever their fold changes.
    """
    main, last = options.main, len(options.classes) - 1
    if options.compat_r:
        return min(main + 1, last), max(main - 1, 0)
    order = np.argsort(options.fold_changes, kind="stable").tolist()
    place = order.index(main)
    return order[min(place + 1, last)], order[max(place - 1, 0)]


def classes_by_usual_copies(options: CnvOptions) -> Indices:
    """Return int32[3, classes + 1]: the class to show where 0, 1 or 2 copies are usual.

    The model compares with the usual copies. The class to show has the same number of copies: its
    fold change is nearest to half of the model's where one copy is usual, on the same side of the
    usual one. In haploid genomes it is the model's class. The last column, NOT_CALLED, stays so;
    where no copies are usual nothing is called.
    """
    folds, main = np.array(options.fold_changes), options.main
    found = np.full((3, len(folds) + 1), NOT_CALLED, np.int32)
    found[2, :-1] = np.arange(len(folds))
    if options.model == "haplo":
        found[1] = found[2]
        return found
    usual = int(np.abs(folds - folds[main] / 2).argmin())
    for k, fold in enumerate(folds):
        same_side = np.flatnonzero(np.sign(folds - folds[usual]) == np.sign(fold - folds[main]))
        near = same_side if len(same_side) else np.array([usual])
        # Of two that are equally near, take the one farther from what is usual.
        away = np.abs(folds[near] - folds[usual])
        found[1, k] = near[np.lexsort((-away, np.abs(folds[near] - fold / 2)))[0]]
    return found


def class_labels(copy_number: Indices, classes: Sequence[str]) -> tuple[Indices, list[str]]:
    """Return the index of each label, and the labels: MISSING for NOT_CALLED."""
    # NOT_CALLED is -1, which becomes the last label.
    return copy_number % (len(classes) + 1), [*classes, MISSING]


def fractional_copy_numbers(value: Floats, options: CnvOptions, copies: Any) -> Floats:
    """Return copy numbers from signed I/NI, to one decimal; NaN where no copies are usual.

    copies  usual copies of each value
    """
    usual = np.where(copies, copies, np.nan)
    return np.round(usual * options.fold_changes[options.main] * np.exp2(value), 1)


def fractional_labels(copies: Floats, options: CnvOptions) -> tuple[Indices, list[str]]:
    """Return the index of each copy number's label, and the labels: `CN1.7`.

    R pads all labels of a vector, or of each row of a matrix, to one width: `CN 1.7` beside
    `CN16.0`.
    """
    values, places = np.unique(copies, return_inverse=True)
    texts = [f"{value:.1f}" for value in values.tolist()]
    width = np.zeros(1, np.int32)
    if options.compat_r:
        lengths = np.array([len(text) for text in texts], np.int32)
        width = lengths[places].max(axis=-1, keepdims=True, initial=0)
    widths = range(int(width.max(initial=0)) + 1)
    labels = [MISSING if text == "nan" else "CN" + text.rjust(n) for n in widths for text in texts]
    return (width * len(texts) + places).astype(np.int32), labels
