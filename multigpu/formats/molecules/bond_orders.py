"""Bond orders and formal charges of PDBQT and MOL2, which do not say them as other formats do.

Meeko writes `REMARK SMILES` with the molecule, `REMARK SMILES IDX` with pairs of the number of an
atom in it and in the file, and `REMARK H PARENT` with pairs of the number of a heavy atom in the
SMILES and of its hydrogen in the file. Of MOL2 RDKit understands most of what programs write.

Else orders are perceived. Hydrogens on carbon are not in PDBQT: how many there are follows from the
geometry of the carbons. Then all valences are known but for the orders, which RDKit finds for the
charge that the file's charges sum up to.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from multigpu.formats.molecules.bonds import (
    bonds_of,
    check_size,
    graph_by_valence,
    near_bonds,
    neighbours_of,
)
from multigpu.formats.molecules.elements import is_element, without_isotopes
from multigpu.formats.molecules.molecule import AROMATIC, Bond, BondGraph, Molecule, MoleculeError
from multigpu.formats.molecules.pdb import SERIAL
from multigpu.formats.optional import quiet_rdkit

SMILES, INDEX, PARENT = "REMARK SMILES", "REMARK SMILES IDX", "REMARK H PARENT"
REMARK = re.compile(rb"^REMARK (SMILES IDX|SMILES|H PARENT) ([^\r\n]+)", re.MULTILINE)
# Å: a carbon with a shorter bond to one of these is unsaturated. Between single bonds of saturated
# carbon (C–C 1.50, C–N 1.45, C–O 1.41, C–S 1.80) and what unsaturated carbon has at least one of
# (aromatic C–C 1.40, amidine C–N 1.34, carboxylate C–O 1.26, thiophene C–S 1.72).
UNSATURATED = {"C": 1.44, "N": 1.41, "O": 1.37, "S": 1.765}
FLAT_TYPES = ("A", "C.ar", "C.2", "C.cat")  # AutoDock's, SYBYL's
LINEAR = 155.0  # degrees between the bonds of a carbon with two triple or double bonds, at least
FLAT = 350.0  # degrees of the three angles of a flat carbon, at least
TRIPLE = 1.25  # Å, of a triple bond of carbon to carbon or nitrogen, at most
OTHER_CHARGES = (0, 1, -1, 2, -2, 3, -3)  # e, of a molecule, the likelier first
MOST_RESONANT = 200  # atoms whose resonance structures are tried, too
MOST_TRIED = 100_000  # assignments of orders, times atoms: where it takes more there is a mistake
MOST_RESONANCE = 50  # structures
# Atoms that no ligand has. A charged carbon is a sign of wrong hydrogens; nitrogen with a plus has
# three neighbours, but for azides and diazo groups.
IMPOSSIBLE = (
    "[$([!+0;!+;!-]),$([#1,#6;!+0]),$([#7;+;D0,D1,D2;!$(*~[#7;D1])]),$([#8;+]),$([#16;+;D0,D1,D2])]"
)


def pdbqt_graph(molecule: Molecule) -> BondGraph:
    """Return bonds with orders, and formal charges, of PDBQT.

    Raises MoleculeError where they follow neither from remarks nor from positions.
    """
    remarks, near = _remarks(molecule), near_bonds(molecule.elements, molecule.positions)
    if INDEX in remarks:
        return _graph_by_remarks(molecule, remarks, near)
    return _perceive_orders(molecule, near)


def mol2_graph(molecule: Molecule) -> BondGraph:
    """Return bonds with orders, and formal charges, of MOL2. Raises MoleculeError.

    Aromatic rings keep their bonds. Without any hydrogen only valences charge an atom, which may
    as well lack one. What makes no sense is as the file says, without charges.
    """
    check_size(molecule)
    bonds, is_bare = bonds_of(molecule), "H" not in without_isotopes(molecule.elements)
    rings, graph = list[Bond](), None
    record = b"".join(molecule.format.keep_atoms(molecule, range(len(molecule.elements))))
    with quiet_rdkit() as chem:
        with suppress(ValueError, RuntimeError):
            graph = chem.MolFromMol2Block(record.decode("utf-8", "replace"), True, False)
        # RDKit takes an atom that lacks a hydrogen for a radical.
        radicals = any(
            atom.GetNumRadicalElectrons() for atom in (graph.GetAtoms() if graph else ())
        )
        if graph and graph.GetNumAtoms() != len(molecule.elements):
            graph = None  # it leaves out what is no atom
        if graph is None or (radicals and not is_bare):
            try:
                found, charges = _perceive_orders(molecule, bonds)
            except (ValueError, RuntimeError):  # bonds to itself, or twice; no sense
                return BondGraph(bonds, {})
        else:
            aromatic = [bond for bond in bonds if bond[2] == AROMATIC]
            rings = [x for x in aromatic if graph.GetBondBetweenAtoms(*x[:2]).GetIsAromatic()]
            chem.Kekulize(graph, True)
            found, charges = _graph_of(graph, {i: i for i in range(len(molecule.elements))})
    if is_bare:
        charges = graph_by_valence(replace(molecule, bonds=found)).charges
    orders = {frozenset(bond[:2]): bond[2] for bond in [*found, *rings]}
    laid = [(a, b, orders.get(frozenset((a, b)), order)) for a, b, order in bonds]
    return BondGraph(laid, charges)


# ---- remarks ----------------------------------------------------------------------------------


def _remarks(molecule: Molecule) -> dict[str, list[str]]:
    """Return the words of each remark, all lines together."""
    found: dict[str, list[str]] = {}
    for label, content in REMARK.findall(molecule.text):
        words = content.decode("utf-8", "replace").split()
        found.setdefault(f"REMARK {label.decode()}", []).extend(words)
    return found


def _graph_by_remarks(
    molecule: Molecule, remarks: Mapping[str, list[str]], near: Sequence[Bond]
) -> BondGraph:
    """Return what the remarks say. Raises MoleculeError where they are not about these atoms."""
    with quiet_rdkit() as chem:
        graph = chem.MolFromSmiles(" ".join(remarks.get(SMILES, [])[:1]))
        if graph is None:
            raise MoleculeError(f"RDKit does not read its {SMILES}")
        chem.Kekulize(graph, True)
    try:
        rows = {int(molecule.lines[row][SERIAL]): i for i, row in enumerate(molecule.rows)}
        atoms = {k - 1: rows[serial] for k, serial in _pairs(remarks[INDEX])}
        parents = [(atoms[k - 1], rows[h]) for k, h in _pairs(remarks.get(PARENT, []))]
    except (KeyError, ValueError):
        raise MoleculeError(f"its {INDEX} names atoms that are not there") from None
    symbols = {k: atom.GetSymbol() for k, atom in enumerate(graph.GetAtoms())}
    heavy = {i for i, symbol in enumerate(molecule.elements) if symbol != "H"}
    same = {k: molecule.elements[i] for k, i in atoms.items()} == symbols
    if not same or not heavy <= set(atoms.values()):
        raise MoleculeError(f"its {SMILES} has other atoms than these")
    found, charges = _graph_of(graph, atoms)
    bonds = [*found, *((heavy_atom, hydrogen, 1) for heavy_atom, hydrogen in parents)]
    bound = {atom for bond in bonds for atom in bond[:2]}
    bonds += [bond for bond in near if not {*bond[:2]} <= bound]
    return BondGraph(bonds, charges)


def _pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    numbers = [int(word) for word in words]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


# ---- perception -------------------------------------------------------------------------------


def _perceive_orders(molecule: Molecule, bonds: Sequence[Bond]) -> BondGraph:
    """Return orders for the first charge that gives all atoms valences. Raises MoleculeError."""
    check_size(molecule)
    known = all(map(is_element, molecule.elements))
    # Others than the sum, too: programs write 0 for ions.
    likely = dict.fromkeys([round(float(molecule.charges.sum())), *OTHER_CHARGES])
    with quiet_rdkit() as chem:
        single = _with_single_bonds(chem, molecule, bonds) if known else None
        impossible = chem.MolFromSmarts(IMPOSSIBLE)
        for charge in likely if known else ():
            for graph in _with_orders(chem, single, charge):
                if not graph.HasSubstructMatch(impossible):
                    chem.Kekulize(graph, True)
                    # Hydrogens that were added come after the file's atoms.
                    return _graph_of(graph, {i: i for i in range(len(molecule.elements))})
    raise MoleculeError(
        "its bond orders do not follow from its places, and it has no REMARK SMILES: write its"
        " poses as .pdbqt, or prepare it with Meeko"
    )


def _with_orders(chem: Any, single: Any, charge: int) -> Iterator[Any]:
    """Yield the molecule with orders and formal charges, and its resonance structures."""
    from rdkit.Chem.rdDetermineBonds import DetermineBondOrders

    graph = chem.RWMol(single)
    try:
        most = MOST_TRIED // graph.GetNumAtoms()
        DetermineBondOrders(graph, charge, embedChiral=False, maxIterations=most)
        _join_charges(chem, graph)
        chem.SanitizeMol(graph)
    except (ValueError, RuntimeError):
        return
    yield graph
    if len(graph.GetAtoms()) <= MOST_RESONANT:
        yield from chem.ResonanceMolSupplier(graph, 0, MOST_RESONANCE)


def _join_charges(chem: Any, graph: Any) -> None:
    """Make S=O of S⁺–O⁻, which is how sulfoxides are written."""
    for bond in graph.GetBonds():
        ends = {atom.GetSymbol(): atom for atom in (bond.GetBeginAtom(), bond.GetEndAtom())}
        if set(ends) != {"S", "O"}:
            continue
        while ends["S"].GetFormalCharge() > 0 > ends["O"].GetFormalCharge():
            ends["S"].SetFormalCharge(ends["S"].GetFormalCharge() - 1)
            ends["O"].SetFormalCharge(0)
            bond.SetBondType(chem.BondType.DOUBLE)


def _graph_of(graph: Any, atoms: Mapping[int, int]) -> BondGraph:
    """Return what RDKit says of some atoms. atoms: their numbers there → those in the file."""
    bonds = []
    for bond in graph.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        if a in atoms and b in atoms:
            bonds.append((atoms[a], atoms[b], round(bond.GetBondTypeAsDouble())))
    charges = {i: graph.GetAtomWithIdx(k).GetFormalCharge() for k, i in atoms.items()}
    return BondGraph(bonds, {i: charge for i, charge in charges.items() if charge})


def _with_single_bonds(chem: Any, molecule: Molecule, near: Sequence[Bond]) -> Any:
    """Return the molecule with single bonds, and the hydrogens its carbons lack after its atoms."""
    graph = chem.RWMol()
    arms = neighbours_of(len(molecule.elements), near)
    for element in without_isotopes(molecule.elements):
        graph.AddAtom(chem.Atom(element))
    for a, b, _ in near:
        graph.AddBond(a, b, chem.BondType.SINGLE)
    for i, element in enumerate(molecule.elements):
        if element == "C" and not any(molecule.elements[arm] == "H" for arm in arms[i]):
            for _ in range(_bonds_of_carbon(molecule, i, arms[i]) - len(arms[i])):
                graph.AddBond(i, graph.AddAtom(chem.Atom("H")), chem.BondType.SINGLE)
    for atom in graph.GetAtoms():
        atom.SetNoImplicit(True)
    conformer = chem.Conformer(graph.GetNumAtoms())
    conformer.Set3D(True)
    graph.AddConformer(conformer)
    return graph


def _bonds_of_carbon(molecule: Molecule, i: int, arms: Sequence[int]) -> int:
    """Return how many neighbours a carbon has with its hydrogens: 4, 3 or 2."""
    ways = molecule.positions[arms] - molecule.positions[i]
    lengths = np.sqrt((ways**2).sum(axis=1))
    ways /= lengths[:, None]
    cosines = np.clip(ways @ ways.T, -1, 1)
    angles = np.degrees(np.arccos(cosines[np.triu_indices(len(ways), 1)])).tolist()
    if len(arms) > 2:
        return 3 if len(arms) == 3 and sum(angles) > FLAT else 4
    bonds = [(molecule.elements[arm], length) for arm, length in zip(arms, lengths, strict=True)]
    triple = any(element in ("C", "N") and length < TRIPLE for element, length in bonds)
    if triple or (angles and angles[0] > LINEAR):
        return 2
    short = any(length < UNSATURATED.get(element, 0.0) for element, length in bonds)
    return 3 if molecule.types[i] in FLAT_TYPES or short else 4
