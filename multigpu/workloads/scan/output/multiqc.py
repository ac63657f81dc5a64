"""Files of `--multiqc`: a heat map and columns of the general statistics, as MultiQC reads them."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, BinaryIO

from multigpu.workloads.scan.output.record_sink import bare_name
from multigpu.workloads.scan.output.row_lines import decoded
from multigpu.workloads.scan.tally import DIGITS, Tallies

MATE = re.compile(r"[._]R[12](_\d{3})?$")
MOST_SIGNATURES = 100  # in the heat map: those with most reads

Json = dict[str, Any]


def write_heat_map(file: BinaryIO, tallies: Tallies) -> None:
    """Write shares of reads with a match, files x signatures."""
    signatures = decoded(tallies.signatures.names, "utf-8")
    top = tallies.top(MOST_SIGNATURES)
    few = f", for the {len(top)} with most reads" if len(top) < len(signatures) else ""
    data = {
        name: {signatures[i]: _percent(found["share"][i]) for i in top.tolist()}
        for name, found in zip(sample_names(tallies.names), tallies, strict=True)
    }
    _write(file, {
        "id": "multigpu_scan",
        "section_name": "Signatures",
        "description": f"Share of the reads of each file that have each signature{few}.",
        "plot_type": "heatmap",
        "pconfig": {
            "id": "multigpu_scan_heatmap", "title": "multigpu: reads with a signature",
            "xlab": "signature", "ylab": "file", "zlab": "% of the reads", "square": False,
            "xcats_samples": False, "ycats_samples": True, "min": 0,
            "cluster_rows": False, "cluster_cols": False,
        },
        "data": data,
    })  # fmt: skip


def write_columns(file: BinaryIO, tallies: Tallies) -> None:
    """Write columns of MultiQC's general statistics."""
    found = (tallies.records.tolist(), tallies.matched.tolist())
    numbers = zip(sample_names(tallies.names), *found, strict=True)
    _write(file, {
        "id": "multigpu_scan_numbers",
        "plot_type": "generalstats",
        "headers": {
            "reads": {"title": "Reads", "description": "Reads, or sequences", "min": 0,
                      "format": "{:,.0f}", "scale": "Blues"},
            "matched": {"title": "% with a match", "min": 0, "max": 100, "suffix": "%",
                        "description": "Reads with a match of a signature",
                        "scale": "Greens"},
        },
        "data": {
            name: {"reads": records, "matched": _percent(matched / max(records, 1))}
            for name, records, matched in numbers
        },
    })  # fmt: skip


def sample_names(paths: Sequence[str]) -> list[str]:
    """Return a name for each file: without folder, suffixes and _R1, where no two are then equal.

    Else they keep their mate, or are the paths.
    """
    bare = list(map(bare_name, paths))
    found = [MATE.sub("", name) or name for name in bare]
    for longer in (bare, list(paths)):
        times = Counter(found)
        found = [
            name if times[name] == 1 else more for name, more in zip(found, longer, strict=True)
        ]
    return found


def _percent(share: float) -> float:
    return round(100 * float(share), DIGITS)


def _write(file: BinaryIO, section: Json) -> None:
    file.write(json.dumps(section, indent=1).encode() + b"\n")
