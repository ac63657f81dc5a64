"""Options of a scan that cannot be, or do not go together."""

import math
from typing import Any

import pytest

from multigpu.errors import UsageError
from multigpu.workloads.scan.options import ScanOptions

SHEET = {"sample_sheet": "sheet.tsv"}


@pytest.mark.parametrize(("options", "problem"), [
    *[({"within": value}, "within is .*; it must be BEGIN:END, two whole numbers")
      for value in ("8", "1:2:3", "a:", " 0:3", "0:3 ", "", "0.0:3", "١:", 8)],
    *[({"max_ambiguous": value}, "max_ambiguous is .*; it must be a whole")
      for value in (True, -1, 1.0, "1", -0.5, math.nan)],
    ({"max_mismatches": -1}, "max_mismatches is -1; it .* of the signature from 0.0 to below"),
    ({"max_edits": 1.5}, r"max_edits is 1\.5; it must be"),
    ({"exact_suffix": -3}, "exact_suffix is -3; it must be 0 or more bases$"),
    ({"max_edits": 1, "max_mismatches": 1}, "give max_mismatches or max_edits, not both$"),
    ({"min_delta": 2}, "min_delta needs hits top$"),
    ({"min_overlap": 4}, "min_overlap needs overhang$"),
    ({"overhang": "end", "min_overlap": 0}, "min_overlap is 0 bases; it must be 1 to 1,0"),
    ({"overhang": "end", "min_overlap": 10**20}, "min_overlap is 10+ bases; it must be"),
    ({"hits": "top", "min_delta": 10**20}, "min_delta is 10+; it must be 1 to 1,000,000,000$"),
    ({"overhang": "end", "max_edits": 1}, "overhang does not go with max_edits: give max_mis"),
    ({"overhang": "end", "hits": "top", "min_delta": 2}, "overhang does not go with min_delta"),
    ({"circular": True, "overhang": "end"}, "circular does not go with overhang$"),
    ({"circular": True, "within": "0:9"}, "circular does not go with within$"),
    ({"circular": True, "max_edits": 1}, "circular does not go with max_edits: give max_mism"),
    ({"circular": True, "max_rna_bulges": 1}, "max_rna_bulges does not go with circular$"),
    ({"max_edits": 1, "max_dna_bulges": 1}, "max_dna_bulges does not go with max_edits: give"),
    ({"hits": "sites"}, "hits sites needs the end that sites share: give exact_prefix or"),
    ({"hits": "sites", "exact_prefix": 1, "exact_suffix": 1}, "hits sites needs the end that"),
    ({"hits": "sites", "exact_prefix": 1, "max_edits": 1}, "hits sites does not go with max"),
    ({**SHEET, "hits": "all"}, "sample_sheet: hits must be top$"),
    ({**SHEET, "max_edits": 1}, "sample_sheet does not go with max_edits"),
    ({**SHEET, "strand": "both"}, "sample_sheet does not go with strand$"),
])  # fmt: skip
def test_options__that_cannot_be_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=f"^{problem}"):
        ScanOptions(**options)
