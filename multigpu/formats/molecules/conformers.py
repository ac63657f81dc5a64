"""Conformers of a molecule by RDKit's ETKDG, as records of SDF."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from multigpu.errors import quoted
from multigpu.formats.molecules.bonds import MOST_ATOMS, check_size
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.formats.molecules.sdf import SDF, build
from multigpu.formats.molecules.smiles import SMILES, read_smiles
from multigpu.formats.optional import quiet_rdkit

NEAREST = 0.25  # Å between two conformers, over all atoms as numbered, at least
LONGEST_SMILES = 5_000  # characters
ATTEMPTS = 20  # at a conformer, from distances and from random places each
MINIMISED = 100  # steps at most: bonds, angles and rings relax, the molecule does not fold up
TABLE_END = b"M  END"


class Conformers(NamedTuple):
    """Conformers of one molecule.

    records  in SDF, with all hydrogens
    strains  MMFF94 energy of each above the lowest, kcal/mol, minimised; NaN without parameters
    atoms    of each
    left     atoms in other fragments of the molecule, which are left out
    """

    records: Sequence[bytes]
    strains: Sequence[float]
    atoms: int
    left: int


def make_conformers(text: bytes, layout: str, count: int) -> Conformers:
    """Return up to `count` conformers of the largest fragment of a record. Raises MoleculeError.

    They are embedded by ETKDG version 3 (Wang and others 2020, doi:10.1021/acs.jcim.0c00025), and
    those nearer than NEAREST to one before are left out. Then each is minimised by MMFF94 (Halgren
    1996, doi:10.1002/jcc.540170502), where that has parameters. The random numbers follow from the
    molecule, so equal records have equal conformers. Other threads run meanwhile.
    """
    from rdkit.Chem.rdDistGeom import EmbedMultipleConfs, ETKDGv3

    with quiet_rdkit() as chem:
        graph, items = _read_graph(chem, text, layout)
        name = FORMATS[layout].read_name(text)
        graph = chem.AddHs(graph)
        fragments = chem.GetMolFrags(graph, asMols=True)
        largest = max(fragments, key=lambda fragment: fragment.GetNumAtoms(), default=graph)
        if not largest.GetNumAtoms():
            raise MoleculeError("it has no atoms")
        if largest.GetNumAtoms() > MOST_ATOMS:
            raise MoleculeError(f"it has more than {MOST_ATOMS} atoms: no conformers are made")
        settings = ETKDGv3()
        settings.randomSeed = crc32(chem.MolToSmiles(largest).encode()) & 0x7FFFFFFF
        settings.maxIterations = ATTEMPTS
        settings.pruneRmsThresh = NEAREST
        settings.onlyHeavyAtomsForRMS = settings.useSymmetryForPruning = False
        try:
            found = list(EmbedMultipleConfs(largest, count, settings))
            if not found:
                settings.useRandomCoords = True
                found = list(EmbedMultipleConfs(largest, count, settings))
        except (ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise MoleculeError(f"RDKit's ETKDG makes no conformers of it: {reason}") from error
        if not found:
            raise MoleculeError("RDKit's ETKDG finds no coordinates for it: give SDF with some")
        largest.SetProp("_Name", name)
        strains = _minimise(largest)
        blocks = [chem.MolToMolBlock(largest, confId=i).encode() for i in found]
        return Conformers(
            records=[block + items for block in blocks],
            strains=strains,
            atoms=largest.GetNumAtoms(),
            left=graph.GetNumAtoms() - largest.GetNumAtoms(),
        )


def canonical_smiles(text: bytes, layout: str) -> str:
    """Return RDKit's canonical SMILES of a record, without hydrogens; "" where it has none."""
    with quiet_rdkit() as chem:
        try:
            return str(chem.MolToSmiles(chem.RemoveHs(_read_graph(chem, text, layout)[0])))
        except (ValueError, RuntimeError):
            return ""


def _read_graph(chem: Any, text: bytes, layout: str) -> tuple[Any, bytes]:
    """Return RDKit's molecule of a record, and the data items of SDF. Raises MoleculeError."""
    if layout == SMILES.name:
        return _graph_of_smiles(chem, read_smiles(text)[0]), b"$$$$\n"
    molecule = parse(text, layout)
    check_size(molecule)
    if molecule.format.atom_types is None:
        raise MoleculeError(f"{layout.upper()} has no bond orders: give SDF, MOL2 or SMILES")
    block = text if molecule.format is SDF else build(molecule, "", molecule.positions, {})
    table, end, items = block.partition(TABLE_END)
    graph = chem.MolFromMolBlock((table + end).decode("utf-8", "replace"), True, False)
    if graph is None:
        raise MoleculeError("RDKit does not read this molecule: do its bonds make sense?")
    return graph, items.lstrip(b"\r\n") or b"$$$$\n"


def _graph_of_smiles(chem: Any, smiles: str) -> Any:
    if len(smiles) > LONGEST_SMILES:
        raise MoleculeError(f"its SMILES has more than {LONGEST_SMILES:,} characters")
    graph = chem.MolFromSmiles(smiles)
    if graph is not None:
        return graph
    raw = chem.MolFromSmiles(smiles, sanitize=False)
    problems = chem.DetectChemistryProblems(raw) if raw is not None else ()
    reasons = "; ".join(problem.Message() for problem in problems)
    raise MoleculeError(f"RDKit does not read its SMILES {quoted(smiles)} {reasons}".rstrip())


def _minimise(graph: Any) -> list[float]:
    """Minimise conformers; return the energy of each above the lowest, see `Conformers`."""
    from rdkit.Chem.rdForceFieldHelpers import MMFFHasAllMoleculeParams, MMFFOptimizeMoleculeConfs

    if not MMFFHasAllMoleculeParams(graph):
        return [math.nan] * graph.GetNumConformers()
    energies = [energy for _, energy in MMFFOptimizeMoleculeConfs(graph, maxIters=MINIMISED)]
    return [energy - min(energies) for energy in energies]
