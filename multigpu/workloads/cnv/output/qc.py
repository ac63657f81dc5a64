"""Files of the quality of samples: a table, and the same for MultiQC."""

import json
from typing import Any

from multigpu.workloads.cnv.results.qc import FEWEST_SAMPLES, QcTable


def tsv(table: QcTable) -> bytes:
    """Return a header and a line for every sample."""
    fine = "no" if len(table) >= FEWEST_SAMPLES else None  # fewer are not compared
    rows = [{**row, "outlier": row["outlier"] or fine} for row in table.records()]
    lines = [rows[0], *(map(_text, row.values()) for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def multiqc(table: QcTable) -> bytes:
    """Return a section of a report of MultiQC, as JSON: a table of the samples."""
    rows = [{k: x for k, x in row.items() if x is not None} for row in table.records()]
    section = {
        "id": "multigpu_cnv",
        "section_name": "Copy numbers",
        "description": "Samples of multigpu cnv: reads, noise, calls and sex.",
        "plot_type": "table",
        "pconfig": {"id": "multigpu_cnv_table", "title": "multigpu: copy numbers"},
        "data": {row.pop("sample"): row for row in rows},
    }
    return json.dumps(section, indent=1).encode() + b"\n"


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return "NA" if value is None else f"{value:.0f}" if whole else str(value)
