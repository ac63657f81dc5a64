"""Pockets of receptors: the box, the maps on its points, and the maps that an earlier run kept."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil, prod
from pathlib import Path

import numpy as np

from multigpu.cluster.devices import memory
from multigpu.cluster.devices.context import ordinal
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.errors import DeviceFailed
from multigpu.errors import InputError, UsageError, first_line, option, spelled
from multigpu.formats.molecules.pockets import Pocket, read_pocket
from multigpu.formats.molecules.pockets.autogrid import AUTOGRID, SUFFIX, write_pocket
from multigpu.formats.molecules.receptors import read_receptor
from multigpu.formats.molecules.scoring import scoring_of, with_vina_types
from multigpu.formats.storage.fingerprints import digest
from multigpu.kernels.maps import GridBox, Maps, Receptor, compute_maps, vina
from multigpu.run import fitness
from multigpu.workloads.dock.ligands import read_first
from multigpu.workloads.dock.options import PADDING, SPACING, MapOptions, PocketRequest
from multigpu.workloads.dock.request import DockRequest

logger = logging.getLogger(__name__)

# Types of organic ligands, and the others. Hydrogens on carbon (H) are merged into it, as AutoDock
# has it.
KNOWN_TYPES = {
    "autodock4": (
        ("C", "A", "N", "NA", "OA", "S", "SA", "HD", "F", "Cl", "Br", "I", "P"),
        ("NS", "OS", "HS", "Mg", "Ca", "Mn", "Fe", "Zn"),
    ),
    "vina": (vina.TYPES[:16], vina.TYPES[16:]),
}
REACH = 8.0  # Å: beyond it AutoGrid's terms but electrostatics end
VALUE_BYTES = 12  # of host memory for a value: computed, gathered, and as the search has it
ROUNDING = 1e-9  # of a number of elements


def make_pocket(
    request: DockRequest | PocketRequest, devices: Sequence[Device] = (), folder: Path | None = None
) -> Pocket:
    """Return the maps of the request's receptor.

    devices  the first makes the maps; without any, or where it fails, the CPU does
    folder   keeps the maps under a name that differs where they do, for the next run

    Warns of what was left out of the receptor, chosen or guessed. Raises InputError, which names an
    atom whose type is not known, and UsageError for a box that cannot be, misses the receptor or is
    larger than memory.
    """
    path, box = str(request.receptor), request.box or box_of_ligand(request)
    points = box_around(box, request.spacing or SPACING)
    scoring, others = request.scoring or "autodock4", request.other_types
    receptor, notes = read_receptor(path, points.center, scoring == "autodock4")
    for note in notes:
        logger.warning("multigpu: %s: %s", path, spelled(note))
    receptor = replace(receptor, types=tuple(others.get(x, x) for x in receptor.types))
    usual, rare = KNOWN_TYPES[scoring]
    known = dict.fromkeys((*usual, *(rare if request.all_types else ()), *others.values()))
    types = tuple(known)
    check_box(path, receptor, points, len(types) + 2)
    name = f"{digest([fitness.program(), receptor, points, types])}{SUFFIX}"
    field = None if folder is None else folder / name
    pocket = None
    if field is not None:
        with suppress(InputError):  # there is none, or it is damaged
            pocket = read_pocket(str(field))
    if pocket is None or pocket.types != types:
        pocket = _make(path, receptor, points, types, devices)
        with suppress(UsageError, OSError):  # another run writes the same, the disk is full, …
            if field is not None:
                field.parent.mkdir(exist_ok=True)
                write_pocket(field, pocket)
                pocket = replace(pocket, path=str(field))
    return with_other_types(replace(pocket, prepared=receptor), others)


def _make(
    path: str, receptor: Receptor, box: GridBox, types: tuple[str, ...], devices: Sequence[Device]
) -> Pocket:
    """Return the pocket. Raises InputError that names an atom whose type is not known."""
    try:
        maps = _compute(receptor, box, types, devices)
    except ValueError as error:
        cure = f"{option('type_as')} TYPE=OTHER takes a type as another one"
        raise InputError(path, f"{error}: {cure}") from None
    return Pocket(
        path=path,
        layout=AUTOGRID.name,
        values=np.stack([*maps.values()]),
        origin=box.origin,
        spacing=np.full(3, box.spacing),
        types=types,
        receptor=path,
    )


def _compute(
    receptor: Receptor, box: GridBox, types: Sequence[str], devices: Sequence[Device]
) -> Maps:
    """Return the maps. This is where a scoring function makes them. Raises ValueError."""
    if scoring_of(types) == "vina":  # a second of a core: less than a GPU takes to start
        return vina.compute_maps(with_vina_types(receptor), box, types)
    for device in devices[:1]:
        try:
            with memory.device_errors(device.name):
                return compute_maps(receptor, box, types, ordinal(device.uuid))
        except (MemoryError, DeviceFailed) as error:
            logger.warning("multigpu: maps are made on the CPU, because %s", first_line(error))
        finally:
            memory.release_pool(ordinal(device.uuid))
    return compute_maps(receptor, box, types)


def box_around(box: Sequence[float], spacing: float) -> GridBox:
    """Return the points of a box: along each axis the least even number of elements that fill it.

    box: center and size, x, y and z, Å. Raises UsageError for a box that cannot be.
    """
    nx, ny, nz = (max(2, 2 * ceil(side / spacing / 2 - ROUNDING)) for side in box[3:])
    x, y, z = (round(float(place), 3) for place in box[:3])
    try:
        return GridBox((x, y, z), (nx, ny, nz), spacing)
    except ValueError as error:
        problem = f"the maps cannot have this box: {error}"
        raise UsageError(f"{problem}: change {option('spacing')} or the box") from None


def box_of_ligand(options: MapOptions) -> list[float]:
    """Return center and size of the box around a ligand with its padding, Å. Raises InputError."""
    places = read_first(str(options.autobox)).positions
    padding = PADDING if options.padding is None else options.padding
    low, high = places.min(axis=0) - padding, places.max(axis=0) + padding
    return [*((low + high) / 2), *(high - low)]


def check_box(path: str, receptor: Receptor, box: GridBox, maps: int) -> None:
    """Raise UsageError for a box that misses the receptor in a file, or is larger than memory."""
    high = box.origin + box.spacing * np.array(box.elements)
    away = receptor.positions - receptor.positions.clip(box.origin, high)
    nearest = np.linalg.norm(away, axis=1).min()
    if nearest > REACH:
        middle = ",".join(f"{x:g}" for x in box.center)
        problem = f"the box around {middle} misses the receptor: its nearest atom is"
        raise UsageError(f"{path}: {problem} {nearest:.4g} Å away")
    needed, free = maps * prod(box.shape) * VALUE_BYTES, memory.free_bytes(None)
    if needed > free:
        points = " × ".join(map(str, box.shape))
        problem = f"{maps} maps of {points} points take {needed:,} bytes of memory"
        cure = f"take a larger {option('spacing')} or a smaller box"
        raise UsageError(f"{problem}, and {free:,} are free: {cure}")


def with_other_types(pocket: Pocket, others: dict[str, str]) -> Pocket:
    """Return the pocket with maps of more types, which are those of others.

    others: type → the one whose map it gets. Raises UsageError where that has none.
    """
    if not others:
        return pocket
    maps = dict(zip(pocket.types, pocket.values, strict=False))  # without those of charges
    if lacking := sorted({*others.values()} - {*maps}):
        one = f"{pocket.path} has no map of {', '.join(lacking)}"
        raise UsageError(f"{option('type_as')}: {one}: it has {', '.join(pocket.types) or 'none'}")
    maps |= {kind: maps[other] for kind, other in others.items()}
    values = np.stack([*maps.values(), *pocket.values[len(pocket.types) :]])
    return replace(pocket, values=values, types=tuple(maps))
