"""The choice of places, against the words of the documents."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bulge_cases import Place, chosen

from multigpu.kernels.scan.choice import Places, choose

LENGTH = 5


def places_with(bulges: st.SearchStrategy[int]) -> st.SearchStrategy[list[Place]]:
    """Return places in any order, each once."""
    few = st.integers(0, 3)
    places = st.builds(
        lambda record, signature, start, strand, errors, bulge: Place(
            record, signature, start, start + LENGTH + bulge, strand, errors, bulge, ""
        ),
        st.integers(0, 1), st.integers(0, 1), few, st.sampled_from("+-"), few, bulges,
    )  # fmt: skip
    return st.lists(places, unique_by=lambda place: place[:5])


def columns_of(places: list[Place]) -> Places:
    record, signature, start, end, strand, errors, bulge, _ = (
        np.array(column) for column in zip(*places, strict=True)
    )
    return Places(record, signature, start, end, strand == "-", errors, bulge)


@pytest.mark.parametrize("wanted", ["all", "first", "best", "sites"])
@given(places=places_with(st.integers(-2, 2)), is_suffix=st.booleans())
def test_chosen_places__as_documented(wanted: Any, places: list[Place], is_suffix: bool) -> None:
    if places:
        numbers = choose(wanted, columns_of(places), exact_suffix=is_suffix)
        assert [places[i] for i in numbers] == chosen(wanted, sorted(places), is_suffix)


@pytest.mark.parametrize("wanted", ["all", "first", "best"])
@given(places=places_with(st.just(0)))
def test_choice__of_the_first_does_not_compare_errors(wanted: Any, places: list[Place]) -> None:
    if places:
        same = [each._replace(mismatches=each.mismatches * (wanted == "best")) for each in places]
        columns = columns_of(places)._replace(bulge=None)
        numbers = choose(wanted, columns)
        assert [same[i] for i in numbers] == chosen(wanted, sorted(same), exact_suffix=True)
        # All have one length, so that they end in the order in which they start.
        assert choose(wanted, columns, by_end=True).tolist() == numbers.tolist()
