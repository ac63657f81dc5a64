"""Names of regions by a BED file beside a table of counts."""

from pathlib import Path

import pytest

from multigpu.errors import InputError
from multigpu.formats.alignments.regions import Regions
from multigpu.workloads.cnv.samples.filters import name_regions

ROWS = [("chr1", 0, 100), ("chr1", 100, 200), ("chr1", 150, 300), ("chr2", 0, 50)]


@pytest.fixture
def bed(tmp_path: Path) -> Path:
    return tmp_path / "x.bed"


def test_genes__of_the_same_regions_are_their_own(bed: Path) -> None:
    bed.write_text("".join(f"{c}\t{a}\t{b}\tG{a}\n" for c, a, b in ROWS))
    named = name_regions(Regions.of(ROWS), str(bed), rename=False)
    assert named.genes == ("G0", "G100", "G150", "G0")
    bed.write_text("".join(f"{c}\t{a}\t{b}\n" for c, a, b in ROWS))  # of controls, say
    assert name_regions(named, str(bed), rename=False).genes == named.genes


def test_genes__of_other_regions_are_those_that_share_a_base(bed: Path) -> None:
    bed.write_text("1\t90\t101\tA\n1\t99\t160\tB\n1\t200\t210\tB\nchr9\t0\t9\tC\n2\t50\t60\tD\n")
    regions = Regions.of(ROWS)
    assert name_regions(regions, str(bed), rename=True).genes == ("A,B", "A,B", "B", "")
    with pytest.raises(InputError, match="none of its names are of regions that the counts have"):
        name_regions(regions, str(bed), rename=False)
    bed.write_text("chr1\t0\t100\n")
    with pytest.raises(InputError, match="its regions have no names: column 4 of a BED file"):
        name_regions(regions, str(bed), rename=False)
