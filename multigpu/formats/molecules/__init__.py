"""Ligands and pockets: files to arrays, and poses back to text.

    file ──> bytes ──> borders ──> records ──> parse ──> Molecule ──> AtomTerms ──> kernel
             ligands   find_ends                                                         │
    file <── text <── rewrite, build <── Molecule, coordinates, notes <── poses <────────┘
      dock.output

Each of `sdf`, `mol2`, `pdb`, `pdbqt` and `xyz` has all of this for one format and ends with a
`LigandFormat`; `registry` lists them. No other module asks what a format is called.

    ligands         files to records, cut as fast as they are read
    molecule        one molecule as an object; what a format is; `registry`: all of them
    fields, elements   what the formats share: lines, words and numbers, symbols
    regular_pdbqt   regular records of PDBQT, many at once; their numbers: `decimals`
    bond_orders     bonds of MOL2 and PDBQT, which say less than others
    bonds           bonds and charges by places and valences
    autodock_types  atom types, charges, torsions; `scoring`: Vina's, and the atoms as arrays
    poses           a pose as text of any format; `dock.output`: where it goes
    pockets         score grids: AutoGrid, others; `rotations`: lists of them in files
    receptors       the atoms of which maps of AutoGrid are made
"""
