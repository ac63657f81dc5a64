"""Packages that only some jobs need."""

from contextlib import ExitStack

import pytest

from multigpu.formats.optional import quiet_rdkit


def test_rdkit__is_quiet_until_the_last_that_wants_it_ends(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Threads overlap: one may end while another reads."""
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(quiet_rdkit())
        chem = other.enter_context(quiet_rdkit())
        one.close()
        assert chem.MolFromSmiles("wrong") is None
        assert capfd.readouterr().err == ""
    chem.MolFromSmiles("wrong")
    assert "SMILES Parse Error" in capfd.readouterr().err
