"""Grouping of consecutive records of one title, or one SMILES: they are conformers of a ligand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.ligands import LigandRecords
from multigpu.formats.molecules.registry import FORMATS
from multigpu.workloads.dock.options import GroupBy

# Where a ligand would have more, the next one begins: a whole library may have one title.
MOST_CONFORMERS = 4096


@dataclass(frozen=True)
class Grouping:
    """Rule by which consecutive records are one ligand. by: None where each is one."""

    by: GroupBy | None = None

    def key(self, text: bytes, layout: str) -> str:
        """Return what the records of one ligand have in common; "" for a record that is one."""
        if self.by is None or not text:
            return ""
        if self.by == "title":
            title = FORMATS[layout].read_name(text)
            return title if title.strip("*") else ""  # Open Babel's MOL2 without one has *****
        from multigpu.formats.molecules.conformers import canonical_smiles

        return canonical_smiles(text, layout)

    def number(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return int64[records]: the ligand of each, from 0, ascending.

        keys: of consecutive records, the first of which begins a ligand
        """
        ligands, ligand, size = np.empty(len(keys), np.int64), -1, 0
        for i, key in enumerate(keys):
            begins = not i or not key or key != keys[i - 1] or size == MOST_CONFORMERS
            ligand, size = (ligand + 1, 1) if begins else (ligand, size + 1)
            ligands[i] = ligand
        return ligands

    def continued(self, group: Sequence[LigandRecords], following: LigandRecords) -> int:
        """Return how many of the following records are of the last ligand of a group.

        group: consecutive records, the first of which begins a ligand
        """
        if self.by is None or not group or group[0].layout != following.layout:
            return 0
        backwards = (key for records in reversed(group) for key in self.keys(records, -1))
        last = next(backwards)
        begun = 1 + sum(1 for _ in takewhile(last.__eq__, backwards)) if last else 0
        room = -begun % MOST_CONFORMERS
        return sum(1 for _ in takewhile(last.__eq__, islice(self.keys(following), room)))

    def keys(self, records: LigandRecords, step: int = 1) -> Iterator[str]:
        """Yield the key of each record, with its file. step: −1 to begin with the last one."""
        texts = records.texts
        for i in range(len(texts))[::step]:
            key = self.key(texts[i], records.layout)
            yield f"{records.source} {key}" if key else ""


EACH_ALONE = Grouping()
