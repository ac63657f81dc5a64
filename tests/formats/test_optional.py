"""Packages that only some jobs need."""

from support.program import run_python

OVERLAPPING = """
import sys
from contextlib import ExitStack
from multigpu.formats.optional import quiet_rdkit
with ExitStack() as one, ExitStack() as other:
    one.enter_context(quiet_rdkit())
    chem = other.enter_context(quiet_rdkit())
    one.close()
    chem.MolFromSmiles("wrong")
    print("ended", file=sys.stderr, flush=True)
chem.MolFromSmiles("loud")
"""


def test_rdkit__is_quiet_until_the_last_that_wants_it_ends() -> None:
    """Threads overlap: one may end while another reads. A process, as libraries move its logs."""
    said = run_python("-c", OVERLAPPING).all_err
    assert said.startswith("ended\n")
    assert "while parsing: loud" in said
