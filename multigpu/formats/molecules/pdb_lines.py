"""Lines of PDB that belong together: alternate locations of an atom, and bonds by CONECT."""

from collections import Counter
from collections.abc import Iterable, Sequence

SERIAL, ATOM_NAME, LOCATION = slice(6, 11), slice(12, 16), slice(16, 17)  # columns
RESIDUE = slice(21, 27)
OCCUPANCY = slice(54, 60)
ABOUT_ATOMS = (b"ATOM  ", b"HETATM", b"ANISOU", b"SIGATM", b"SIGUIJ")
PARTNERS = [slice(at, at + 5) for at in range(11, 31, 5)]
OTHERS = slice(31, None)  # of CONECT in old files: hydrogen bonds and salt bridges
MOST_ORDER = 3  # of a bond


def other_locations(lines: Sequence[bytes], rows: Sequence[int]) -> set[int]:
    """Return the rows of alternate locations that are not taken, of all lines about atoms.

    Of each residue's atom the best occupied location is taken, the first of equals. Atoms without
    a letter for their location have no other.
    """
    best: dict[tuple[bytes, bytes], tuple[float, bytes]] = {}
    with_letter = [row for row in rows if lines[row][LOCATION].strip()]
    for row in with_letter:
        atom, occupancy = _atom(lines[row]), _occupancy(lines[row])
        if atom not in best or occupancy > best[atom][0]:
            best[atom] = occupancy, lines[row][LOCATION]
    return {
        row
        for row, line in enumerate(lines if with_letter else ())
        if line.startswith(ABOUT_ATOMS)
        and line[LOCATION].strip()
        and line[LOCATION] != best.get(_atom(line), (0, b""))[1]
    }


def drop_lines(lines: Sequence[bytes], rows: Sequence[int], dropped: set[int]) -> list[bytes]:
    """Return all lines, those in the dropped rows empty, and no CONECT of their atoms.

    rows: of all atoms.
    """
    if not dropped:
        return list(lines)
    kept = [b"" if row in dropped else line for row, line in enumerate(lines)]
    gone = _serials(lines, dropped.intersection(rows)) - _serials(kept, rows)
    return [_conect_without(line, gone) if line.startswith(b"CONECT") else line for line in kept]


def _serials(lines: Sequence[bytes], rows: Iterable[int]) -> set[bytes]:
    return {lines[row][SERIAL].strip() for row in rows} - {b""}


def _conect_without(line: bytes, gone: set[bytes]) -> bytes:
    """Return a CONECT without atoms that are gone; empty where no bond is left."""
    said = line.rstrip()
    partners = [said[part] for part in PARTNERS]
    left = [partner for partner in partners if partner.strip() not in gone]
    if said[SERIAL].strip() in gone:
        return b""
    if left == partners:
        return line
    body, others = b"".join(left), said[OTHERS]
    if not body.strip():
        return b""
    width = OTHERS.start - PARTNERS[0].start if others else 0
    return said[: PARTNERS[0].start] + body.ljust(width) + others + line[len(said) :]


def _atom(line: bytes) -> tuple[bytes, bytes]:
    return line[RESIDUE], line[ATOM_NAME]


def _occupancy(line: bytes) -> float:
    """Return the occupancy of an atom; 1 where there is none."""
    try:
        return float(line[OCCUPANCY].strip() or 1)
    except ValueError:
        return 0.0


def bonds_of_conect(lines: Sequence[bytes], rows: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the bonds of CONECT between atoms in these rows: repeating a partner is the order.

    Either atom may say it, and most programs let both.
    """
    said = [line for line in lines if line.startswith(b"CONECT")]
    if not said:
        return []
    numbers = {lines[row][SERIAL].strip(): atom for atom, row in enumerate(rows)}
    times: Counter[tuple[int, int]] = Counter()
    for line in said:
        atom = numbers.get(line[SERIAL].strip())
        for part in PARTNERS:
            partner = numbers.get(line[part].strip())
            if atom is not None and partner is not None and atom != partner:
                times[atom, partner] += 1
    pairs = sorted({(min(pair), max(pair)) for pair in times})
    return [(a, b, min(max(times[a, b], times[b, a]), MOST_ORDER)) for a, b in pairs]
