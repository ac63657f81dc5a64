"""The redocking set: known ligands, docked again in the box around where they were.

    python benchmarks/redock.py [--what crystal conformers] [--only 1hnn …] [--box 20] [--rivals]
        [--json FILE]

`crystal`: the ligand as in the crystal, turned at random, beside AutoDock 4's rigid search (10 runs
of 2.5 M evaluations). `conformers`: 20 conformers of RDKit in its place, by Vina's scoring, beside
Vina with its defaults. Answers of the rivals are in redock_rivals.json, where `--rivals` adds those
that are missing: a minute of a core each.
"""

import argparse
import gzip
import json
import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from common import ROOT, machine, machine_line, markdown, say
from processes import process, python

import multigpu
from multigpu.formats.molecules.poses import ReferencePose, render
from multigpu.formats.molecules.registry import parse
from multigpu.kernels.rotation.rotations import near_uniform

REDOCK = Path(os.environ.get("MULTIGPU_GOLDEN", ROOT.parent / "shared" / "golden")) / "redock"
RIVALS = Path(__file__).with_name("redock_rivals.json")
NEAR, WORSE = 2.0, 0.05  # Å, kcal/mol: what counts as found
CONFORMERS, TURNS = 20, 10_000  # rotations, of which one is taken at random
GROUPS = {"all": range(99), "0–2": range(3), "3–5": range(3, 6), "6–99": range(6, 99)}
DPF = """autodock_parameter_version 4.2
intelec
seed 11 22
ligand_types {types}
fld {stem}.maps.fld
{maps}
elecmap {stem}.e.map
desolvmap {stem}.d.map
move rigid.pdbqt
about {about}
tran0 random
quaternion0 random
torsdof 0
ga_pop_size 150
ga_num_evals 2500000
ga_num_generations 27000
set_ga
set_psw1
unbound_model bound
ga_run 10
analysis
"""


class Answer(NamedTuple):
    """The best pose of a program: kcal/mol, Å from the crystal's (by symmetry), seconds of CPU."""

    energy: float
    rmsd: float
    seconds: float


NOTHING = Answer(np.nan, np.nan, np.nan)


class Complex:
    """A receptor and its ligand, in a folder of the set; what is made of them lies in another."""

    def __init__(self, source: Path, folder: Path, side: float) -> None:
        """Side: of the box, Å; 0: as the set has it."""
        self.source, self.folder, self.name = source, folder, source.name
        self.crystal, self.start = source / "crystal.pdbqt", source / "start-0.pdbqt"
        self.molecule = parse(self.crystal.read_bytes(), "pdbqt")
        self.torsions = self.molecule.text.count(b"\nBRANCH")
        facts = json.loads((source / "case.json").read_text())
        self.center = facts["center"]
        self.sides = [side or count * facts["spacing"] for count in facts["elements"]]
        self.receptor = folder / f"{self.name}.pdbqt"
        self.receptor.write_bytes(gzip.decompress((source / "receptor.pdbqt.gz").read_bytes()))

    def maps(self, scoring: str) -> Path:
        """Return the field file of the receptor's maps."""
        out = self.folder / f"{self.name}-{scoring}.maps.fld"
        if not out.exists():
            box = ["--box", *(",".join(map(str, each)) for each in (self.center, self.sides))]
            options = [*box, "--scoring", scoring, "-o", str(out), "--gpus", "none"]
            process(python("-m", "multigpu", "pocket", str(self.receptor), *options))
        return out

    def turned(self) -> Path:
        """Return the ligand turned at random about its centroid, the same way every time."""
        path, number = self.folder / f"{self.name}-turned.pdbqt", crc32(self.name.encode()) % TURNS
        (matrix,) = near_uniform(TURNS).matrices(np.array([number]))
        middle = self.molecule.positions.mean(axis=0)
        places = (self.molecule.positions - middle) @ matrix.T + middle
        path.write_bytes(render(self.molecule, self.name, "pdbqt", places, {}))
        return path

    def rmsd(self, pose: bytes) -> float:
        """Return how far a pose in PDBQT is from the crystal's, Å."""
        molecule, path = parse(pose, "pdbqt"), str(self.crystal)
        reference = ReferencePose(path=path, molecule=self.molecule)
        return float(reference.rmsds(molecule, [molecule.positions])[0])

    def run(self, *command: str) -> float:
        """Run a program in the folder; return its seconds of CPU."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def ours(one: Complex, scoring: str, conformers: int | None) -> Answer:
    """Dock in this process, with one thread."""
    pocket, ligand, begin = one.maps(scoring), one.turned(), time.process_time()
    options = {"conformers": conformers, "reference": one.crystal, "gpus": "none", "threads": 1}
    try:
        (batch,) = multigpu.dock(ligand, pocket, **options)
    except multigpu.InputError as problem:  # the bonds of a PDBQT are not always known
        say(f"{problem}")
        return NOTHING
    energy, rmsd = -float(batch.score[0]), float(batch.rmsd_to_reference[0])
    return Answer(energy, rmsd, time.process_time() - begin)


def autodock4(one: Complex) -> Answer:
    """Dock the rigid ligand by AutoDock 4's Lamarckian genetic algorithm, in the same maps."""
    stem = one.maps("autodock4").name.removesuffix(".maps.fld")
    atoms, types = map(one.molecule.lines.__getitem__, one.molecule.rows), {*one.molecule.types}
    rigid = b"".join([b"ROOT\n", *atoms, b"ENDROOT\nTORSDOF 0\n"])
    (one.folder / "rigid.pdbqt").write_bytes(rigid)
    maps = "\n".join(f"map {stem}.{kind}.map" for kind in sorted(types))
    about = " ".join(f"{x:.3f}" for x in one.molecule.positions.mean(axis=0))
    text = DPF.format(types=" ".join(sorted(types)), maps=maps, stem=stem, about=about)
    (one.folder / "rigid.dpf").write_text(text)
    seconds = one.run("autodock4", "-p", "rigid.dpf", "-l", "rigid.dlg")
    poses = (one.folder / "rigid.dlg").read_bytes().replace(b"DOCKED: ", b"").split(b"MODEL  ")[1:]
    energies = [float(re.findall(rb"Intermolecular Energy += +(\S+)", pose)[0]) for pose in poses]
    best = int(np.argmin(energies))
    return Answer(energies[best], one.rmsd(poses[best].partition(b"ENDMDL")[0]), seconds)


def vina(one: Complex) -> Answer:
    """Dock the flexible ligand by Vina, with its defaults and one thread."""
    files = ["--receptor", str(one.receptor), "--ligand", str(one.start), "--out", "vina.pdbqt"]
    for axis, middle, side in zip("xyz", one.center, one.sides, strict=True):
        files += [f"--center_{axis}", str(middle), f"--size_{axis}", str(side)]
    seconds = one.run("vina", *files, "--seed", "1", "--cpu", "1")
    pose = (one.folder / "vina.pdbqt").read_bytes().partition(b"ENDMDL")[0]
    return Answer(float(re.findall(rb"VINA RESULT: +(\S+)", pose)[0]), one.rmsd(pose), seconds)


PARTS: dict[str, Any] = {  # how we dock, and the rival
    "crystal": (("autodock4", None), autodock4),
    "conformers": (("vina", CONFORMERS), vina),
}


def recorded(rival: Any, complexes: list[Complex], is_run: bool) -> list[Answer]:
    """Return the answers of a rival that are kept, NaN for none; it gives them if it is run."""
    kept = json.loads(RIVALS.read_text()) if RIVALS.exists() else {}
    answers = kept.setdefault(rival.__name__, {})
    for one in [each for each in complexes if is_run and each.name not in answers]:
        answers[one.name] = [round(x, 3) for x in rival(one)]
        RIVALS.write_text(json.dumps(kept).replace("], ", "],\n") + "\n")
    return [Answer(*answers.get(one.name, NOTHING)) for one in complexes]


def show(answers: list[tuple[Complex, Answer, Answer]], rival: str) -> None:
    """Print the answers, ours and those of the rival, and how many are near the crystal's."""
    columns = [f"{what}{by}" for by in ("", f", {rival}") for what in ("kcal/mol", "Å", "CPU s")]
    rows = [
        [one.name, str(one.torsions), *(f"{x:.2f}" for each in pair for x in each)]
        for one, *pair in answers
    ]
    print(f"\n{markdown(rows, ['complex', 'torsions', *columns])}\n")
    for name, group in GROUPS.items():
        some = [pair for one, *pair in answers if one.torsions in group]
        near = [sum(pair[k].rmsd <= NEAR for pair in some) for k in (0, 1)]
        low = sum(a.energy <= b.energy + WORSE for a, b in some)
        print(f"{name} torsions: {len(some)}; within {NEAR:g} Å {near[0]}, of {rival} {near[1]};")
        print(f"  energy at most {rival}'s + {WORSE:g} kcal/mol: {low}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="complexes [default: all]")
    parser.add_argument("--box", type=float, default=0.0, help="sides, Å, in place of the set's")
    parser.add_argument("--rivals", action="store_true", help="run rivals where not recorded")
    parser.add_argument("--json", type=Path, help="write the answers here")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="multigpu-redock-"))
    names = options.only or sorted(path.parent.name for path in REDOCK.glob("*/case.json"))
    complexes = [Complex(REDOCK / name, folder, options.box) for name in names]
    complexes.sort(key=lambda one: one.torsions)
    print(machine_line(machine()))
    answers: dict[str, dict[str, Answer]] = {}
    for what in options.what:
        how, rival = PARTS[what]
        ours(complexes[0], *how)  # compiles
        found = []
        for one in complexes:
            found.append(ours(one, *how))
            say(f"{what}: {one.name} {found[-1]}")
        answers[what] = dict(zip([one.name for one in complexes], found, strict=True))
        theirs = recorded(rival, complexes, options.rivals)
        show(list(zip(complexes, found, theirs, strict=True)), rival.__name__)
    if options.json:
        options.json.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
