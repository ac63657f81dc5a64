"""Files of the quality of samples: a table, and the same for MultiQC."""

import json

from multigpu.workloads.cnv.results.qc import FEW_READS, MANY_CALLS, NOISY, QcTable

HEADERS = {
    "reads": {"title": "Reads", "format": "{:,.0f}", "scale": "Blues"},
    "noise": {"title": "Noise", "format": "{:,.3f}", "scale": "OrRd",
              "description": "Median absolute difference of log2 ratios of neighbouring regions"},
    "correlation": {"title": "Correlation", "format": "{:,.3f}", "scale": "Greens",
                    "description": "Mean correlation with the reference samples"},
    "references": {"title": "References", "format": "{:,.0f}",
                   "description": "Samples that it is compared with"},
    "losses": {"title": "Losses", "format": "{:,.0f}", "scale": "PuBu"},
    "gains": {"title": "Gains", "format": "{:,.0f}", "scale": "Reds"},
    "bases": {"title": "Bases in CNVs", "format": "{:,.0f}", "scale": "Purples"},
    "sex": {"title": "Sex"},
    "x": {"title": "X", "format": "{:,.2f}", "description": "Coverage of X, by the autosomes"},
    "y": {"title": "Y", "format": "{:,.2f}", "description": "Coverage of Y, by the autosomes"},
    "outlier": {"title": "Outlier", "description": f"Fewer than {FEW_READS:g} of the median reads,"
                f" {NOISY:g} times the median noise, more than {MANY_CALLS} calls, and others"},
}  # fmt: skip


def tsv(table: QcTable) -> bytes:
    """Return a header and a line for every sample."""
    columns = table.texts()
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def multiqc(table: QcTable) -> bytes:
    """Return a section of a report of MultiQC, as JSON: a table of the samples."""
    rows = [{k: x for k, x in row.items() if x is not None} for row in table.records()]
    data = {row.pop("sample"): row for row in rows}
    section = {
        "id": "multigpu_cnv",
        "section_name": "Copy numbers",
        "description": "Samples of multigpu cnv: reads, noise, calls and sex.",
        "plot_type": "table",
        "pconfig": {"id": "multigpu_cnv_table", "title": "multigpu: copy numbers"},
        "headers": HEADERS,
        "data": data,
    }
    return json.dumps(section, indent=1).encode() + b"\n"
