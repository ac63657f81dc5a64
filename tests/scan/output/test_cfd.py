"""CFD scores against published ones."""

import numpy as np
import pytest

from multigpu.workloads.scan.output.cfd import cfd_scores

# Supplementary table 20 of Doench et al. 2016.
PUBLISHED = [
    ("AGGGGCCGGAGTATTGGGAG", "AGGGGCCCGAGTATTGGGAG", 0.615384615),
    ("TCCACAGATACCTGAAGAAC", "TCCGCAGATACCTGAAGAAC", 0.625),
    ("CCAGGGCGGCCGCCAGCAGC", "CCAGGGCGGCCGCCAACAGC", 1),
    ("ATGTCTCTCCGAGATTGTAA", "CTGTCTCTCCCAGATTGTAA", 0.367346939),
    ("CGACGCAAGTGGGAGCAGAG", "AAACACAAGTGGGAGCAGGC", 0.117857143),
    ("GGCCATCATTGGAGCTGTGG", "AATAGTCACTGGAGCTGTGG", 0.293022734),
    ("CATTACAAGGCCTACCTGGA", "AGACTCAGGGCCTACCTGGA", 0.09859944),
]
# Scores of the table that CRISPRme uses; of a DNA bulge the 20 columns before the PAM count.
BULGES = [
    ("ACGTACGTACGTACGTACGT", "ACGTAC-TACGTACGTACGT", 0.492063492),
    ("ACGTACGTACGTACGTACGT", "ACGTATGTACGT-CGTACGT", 0.029017857),
    ("ACGTACGTACGTACGTACGT", "ACGTACGTACGTACGTACG-", 0),
    ("ACGTACGTACGTACGTACGT", "-CGTACGTACGTACGTACGT", 1),
    ("GGAAACAGTCGATTTTATCA-", "CGAAACAGTCGATTTTATCAC", 0.529411765),
    ("GGAAACAG-CGATTTTATCAC", "GGAAACAGTCGATTTTATCAC", 0),
    ("G-AAACAGGCGATTTTATCAC", "GGAAACAGGCGATTTTATCAC", 1),
]


def scores(*pairs: tuple[str, str]) -> list[float]:
    width = max(len(guide) for guide, _ in pairs)
    guides, sites = (
        np.array([list(text.rjust(width).encode()) for text in each], np.uint8)
        for each in zip(*pairs, strict=True)
    )
    return list(cfd_scores(guides, sites))


def test_score__is_the_published_one() -> None:
    found = scores(*((guide + "NGG", site + "TGG") for guide, site, _ in PUBLISHED + BULGES))
    assert found == pytest.approx([score for _, _, score in PUBLISHED + BULGES], abs=1e-8)


def test_score__falls_with_the_pam() -> None:
    guide = PUBLISHED[0][0]
    found = scores(*((guide + "NGG", guide + pam) for pam in ("AGG", "CAG", "GTG", "TTT")))
    assert found == pytest.approx([1, 0.259259259, 0.038961039, 0], abs=1e-8)


@pytest.mark.parametrize(
    ("guide", "site"),
    [
        ("ACGTACGTACGTACGTACGNNGG", "ACGTACGTACGTACGTACGTTGG"),
        ("ACGTACGTACGTACGTACGTNAG", "ACGTACGTACGTACGTACGTTAG"),
        ("ACGTACGTACGTACGTACGTNGG", "ACGTACGTACGTACGTACGNTGG"),
        ("ACGTACGTACGTACGTACGTNGG", "ACGTACGTACGTACGTACGTT-G"),
        ("ACGTACGTACGTACGTACGTN-GG", "ACGTACGTACGTACGTACGTTAGG"),
        ("CGTACGTACGTACGTACGTNGG", "CGTACGTACGTACGTACGTTGG"),
        ("GG", "GG"),
    ],
)
def test_score__is_missing_for_other_guides_and_unclear_sites(guide: str, site: str) -> None:
    assert np.isnan(scores((guide, site))).all()
