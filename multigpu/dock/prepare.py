"""What a worker of docking does while the others come up.

The command names this before it loads anything else, so that workers start early: nothing heavy is
imported here.
"""

from multigpu.dock.options import DockOptions

FEW = 256  # ligands, enough to be read together
ONE_ATOM = {
    "pdbqt": b"HETATM    1 C    LIG A   1       0.000   0.000   0.000  1.00  0.00     0.000 C \n",
    "sdf": b"atom\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n"
    b"    0.0000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\nM  END\n$$$$\n",
}


def prepare(ligands: str, pocket: str, options: DockOptions, gpu: str | None) -> int:
    """Load what the first ligands on a worker would wait for: modules, context and kernels.

    Docks some, in the format of these ligands and a pocket of the same kind; how many they were.
    """
    import numpy as np

    from multigpu.cluster.workers import worker
    from multigpu.dock.plan import DockSpan
    from multigpu.dock.work import DockedLigands, DockWorkload
    from multigpu.formats.molecules.ligands import LIGANDS, Records
    from multigpu.formats.molecules.poses import SAME
    from multigpu.formats.storage.sources import Source
    from multigpu.kernels.rotation import EulerRotations, Field, Search, near_uniform

    layout = LIGANDS.layout(ligands, b"")
    layout = layout if layout in ONE_ATOM else "pdbqt"
    types = ("C",) if pocket.lower().endswith(".maps.fld") else ()
    values = np.zeros((len(types) + 2 if types else 1, 2, 2, 2), np.float32)
    outside = options.outside_of(types)
    field = Field(values, np.zeros(3), np.ones(3), options.interpolation, outside)
    listed = options.rotations or options.rotation_file
    search = Search(near_uniform(2) if listed else EulerRotations(180.0))
    device = worker.device_of(gpu)
    workload = DockWorkload(
        key="prepare",
        sources=[Source("", None, "none", layout)],
        field=field,
        types=types,
        search=search,
        pose_format=SAME,
        score_lines=True,
    )
    session = workload.open(worker.Here(worker.name(), device, worker.free(device)))
    text = ONE_ATOM[layout]
    records = Records(0, 1, np.full(FEW, len(text), np.int64), text * FEW)
    poses = 0, search.stop
    span = DockSpan(first=0, records=(records,), poses=poses, last=True, whole=True)
    chunk = session.load(span)
    part = session.finish(chunk, session.compute(chunk))
    assert isinstance(part, DockedLigands)  # the span is whole
    return len(part.rows)
