"""Ligands and pockets: files to arrays, and poses back to text.

    file ──> bytes ──> borders ──> records ─┬─> columns ──> LigandColumns ─┐
             ligands   find_ends            │   regular ones, all at once  ├─> AtomColumns ─> kernel
                                            └─> parse ────> Molecule ──────┘
                                                others, one by one                           │
    file <── text <─┬─ write_poses <── names, bodies, coordinates, notes <───────────────────┤
      dock.output   └─ rewrite, build <── Molecule <─────────────────────────────── poses <──┘

Each of `sdf`, `mol2`, `pdb`, `pdbqt` and `xyz` has all of this for one format and ends with a
`LigandFormat`; `registry` lists them. No other module asks what a format is called.

    ligands         files to records, cut as fast as they are read
    columns         many ligands as arrays; compiled functions (kernels/compiled/text) fill them
    molecule        one molecule as an object; what a format is; `registry`: all of them
    fields, elements   what the formats share: lines, words and numbers, symbols
    sybyl, pdbqt_bonds   bonds of MOL2 and PDBQT, which say less than others
    bonds           bonds and charges by places and valences
    autodock_types  AutoDock's atom types and charges
    poses           a pose as text of any format; `dock.output`: where it goes
    pockets         score grids, with a registry of their own; `rotations`: lists of them in files
    receptors       the atoms of which maps of AutoGrid are made
"""
