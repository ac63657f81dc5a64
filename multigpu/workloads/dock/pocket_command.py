"""`multigpu pocket`: the maps of a receptor, which `multigpu dock` takes as its pocket."""

from multigpu.run.command import Reporting, Summary, command_of
from multigpu.run.options import RunOptions
from multigpu.workloads.dock.options import PocketOutput, PocketRequest


@command_of(
    example="multigpu pocket receptor.pdb --autobox crystal.sdf -o pocket.maps.fld",
    without=(Summary, "log_json", "trace", "progress", "dry_run", "json"),
)
def command(request: PocketRequest, out: PocketOutput, reporting: Reporting) -> None:
    """Make AutoGrid's or Vina's maps of a RECEPTOR on the points of a box.

    RECEPTOR is PDBQT, or PDB or mmCIF, which Meeko prepares: what it leaves out or guesses is
    reported. OUT names the maps, which stand beside it: one of each atom type, and for AutoDock
    those of electrostatics and desolvation. `multigpu dock --pocket OUT` and Vina read both kinds,
    AutoDock 4 and AutoDock-GPU their own.
    """
    from multigpu.formats.molecules.pockets.autogrid import check_field, write_pocket
    from multigpu.workloads.dock.pocket import make_pocket

    output = str(out.output)
    check_field(output)
    with reporting.notes():
        pocket = make_pocket(request, RunOptions(gpus=request.gpus).devices())
        write_pocket(output, pocket)
    points = " × ".join(map(str, pocket.shape))
    reporting.say_outcome(f"maps of {', '.join(pocket.types)} on {points} points", output)
