"""Work of a docking worker while the others come up.

The command names this before it loads anything else, so that workers start early: nothing heavy is
imported here.
"""

from multigpu.dock.options import DockOptions

FEW = 256  # ligands


def prepare(ligands: str, pocket: str, options: DockOptions, gpu: str | None) -> int:
    """Load what the first ligands on a worker would wait for: modules, context and kernels.

    Docks a few, in the format of these ligands and a pocket of the same kind; returns how many.
    """
    import numpy as np

    from multigpu.cluster.workers import worker
    from multigpu.dock.plan import DockSpan
    from multigpu.dock.work import DockedLigands, DockWorkload
    from multigpu.formats.molecules.ligands import LIGANDS, LigandRecords
    from multigpu.formats.molecules.pdbqt import PDBQT
    from multigpu.formats.molecules.poses import SAME
    from multigpu.formats.molecules.registry import COLUMN_FORMATS
    from multigpu.formats.storage.sources import Source
    from multigpu.kernels.rotation import EulerRotations, Field, Search, near_uniform

    layout = LIGANDS.layout(ligands, b"")
    layout = layout if layout in COLUMN_FORMATS else PDBQT.name
    text = COLUMN_FORMATS[layout].example
    types = ("C",) if pocket.lower().endswith(".maps.fld") else ()
    values = np.zeros((len(types) + 2 if types else 1, 2, 2, 2), np.float32)
    outside = options.outside_of(types)
    field = Field(values, np.zeros(3), np.ones(3), options.interpolation, outside)
    listed = options.rotations or options.rotation_file
    search = Search(near_uniform(2) if listed else EulerRotations(180.0))
    workload = DockWorkload(
        key="prepare",
        sources=[Source("", None, "none", layout)],
        field=field,
        types=types,
        search=search,
        pose_format=SAME,
        score_lines=True,
    )
    session = workload.open(worker.place_of(gpu))
    lengths = np.full(FEW, len(text), np.int64)
    records = LigandRecords(source=0, number=1, lengths=lengths, text=text * FEW)
    poses = 0, search.stop
    span = DockSpan(first=0, records=(records,), poses=poses, last=True, whole=True)
    chunk = session.load(span)
    part = session.finish(chunk, session.compute(chunk))
    assert isinstance(part, DockedLigands)  # the span is whole
    return len(part.rows)
