"""Pockets of receptors: the box, the maps on its points, and the maps that an earlier run kept."""

import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, prod
from pathlib import Path, PurePath

import numpy as np

from multigpu.cluster.devices import memory
from multigpu.cluster.devices.context import ordinal
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.errors import Failure
from multigpu.cluster.files import failures_named
from multigpu.errors import InputError, UsageError, first_line, option, spelled
from multigpu.formats.molecules.ligands import LIGANDS
from multigpu.formats.molecules.pockets import Pocket, read_pocket
from multigpu.formats.molecules.pockets.autogrid import AUTOGRID
from multigpu.formats.molecules.pockets.autogrid_writer import SUFFIX, write_pocket
from multigpu.formats.molecules.pockets.pocket import check_pocket
from multigpu.formats.molecules.receptors import RECEPTORS, read_receptor
from multigpu.formats.molecules.scoring import scoring_of
from multigpu.formats.molecules.vina import with_vina_types
from multigpu.formats.storage.fingerprints import digest
from multigpu.formats.storage.input_paths import expand, suffix_of
from multigpu.formats.storage.stored_streams import STDIN
from multigpu.kernels.maps import GridBox, Receptor, compute_maps, vina
from multigpu.run import fitness
from multigpu.run.values import path_list
from multigpu.workloads.dock.ligands import read_first
from multigpu.workloads.dock.options import FARTHEST
from multigpu.workloads.dock.pocket_options import MapOptions, PocketRequest

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
KEPT = re.compile(r"pocket-[0-9a-f]{16}\..*")


# ---- the box ----------------------------------------------------------------------------------


def box_around(center: Sequence[float], size: Sequence[float], spacing: float) -> GridBox:
    """Return the points of a box: along each axis the least even number of elements that fill it.

    center, size: x, y and z, Å. Raises UsageError for a box that cannot be.
    """
    if not all(0 < side <= FARTHEST for side in size):
        shown = ",".join(f"{side:g}" for side in size)
        raise UsageError(f"the box has sides of {shown} Å: each must be above 0")
    nx, ny, nz = (max(2, 2 * ceil(side / spacing / 2 - ROUNDING)) for side in size)
    x, y, z = (round(float(place), 3) for place in center)
    try:
        return GridBox((x, y, z), (nx, ny, nz), spacing)
    except ValueError as error:
        problem = f"the maps cannot have this box: {error}"
        raise UsageError(f"{problem}: change {option('spacing')} or the box") from None


def box_of_ligand(path: str, padding: float) -> tuple[float, ...]:
    """Return center and size of the box around the first ligand of a file, Å. Raises InputError.

    padding: Å, on every side
    """
    places = read_first(expand([path], LIGANDS)[0]).positions
    low, high = places.min(axis=0) - padding, places.max(axis=0) + padding
    return *((low + high) / 2).tolist(), *(high - low).tolist()


# ---- the maps ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class ReceptorMaps:
    """Maps that can be made of a receptor.

    path   file of the receptor
    box    their points
    types  atom types that they are of
    """

    path: str
    receptor: Receptor
    box: GridBox
    types: tuple[str, ...]

    def check(self) -> None:
        """Raise UsageError for a box that misses the receptor, or is larger than memory."""
        low, side = self.box.origin, self.box.spacing * np.array(self.box.elements)
        places = self.receptor.positions
        away = places - np.clip(places, low, low + side)
        nearest = float(np.sqrt((away**2).sum(axis=1)).min())
        if nearest > REACH:
            middle = ",".join(f"{x:g}" for x in self.box.center)
            raise UsageError(
                f"{self.path}: the box around {middle} misses the receptor: its nearest atom is"
                f" {nearest:.4g} Å away"
            )
        needed = (len(self.types) + 2) * prod(self.box.shape) * VALUE_BYTES
        free = memory.free_bytes(None)
        if needed > free:
            points = " × ".join(map(str, self.box.shape))
            raise UsageError(
                f"maps of {len(self.types) + 2} kinds on {points} points take {needed:,} bytes of"
                f" memory, and {free:,} are free: take a larger {option('spacing')} or a smaller"
                " box"
            )

    def make(self, devices: Sequence[Device] = (), cpu_fallback: bool = True) -> Pocket:
        """Return the pocket, computed on the first of these devices, else on the CPU.

        cpu_fallback: whether the CPU takes over from a device that fails

        Raises InputError that names an atom of the receptor whose type is not known.
        """
        for device in devices[:1]:
            number = ordinal(device.uuid)
            try:
                with memory.device_errors(device.name):
                    return self._make(number)
            except (MemoryError, Failure) as error:
                if not cpu_fallback or isinstance(error, UsageError):
                    raise
                why = first_line(error)
                logger.warning("multigpu: maps are made on the CPU, because %s", why)
            finally:
                memory.release_pool(number)
        return self._make(None)

    def _make(self, device: int | None) -> Pocket:
        """Return the pocket. This is where a scoring function makes its maps."""
        try:
            if scoring_of(self.types) == "vina":
                # A second of a core: less than a GPU takes to start.
                maps = vina.compute_maps(with_vina_types(self.receptor), self.box, self.types)
            else:
                maps = compute_maps(self.receptor, self.box, self.types, device)
        except ValueError as error:
            cure = f"{option('type_as')} TYPE=OTHER takes a type as another one"
            raise InputError(self.path, f"{error}: {cure}") from None
        pocket = Pocket(
            path=self.path,
            layout=AUTOGRID.name,
            values=np.stack([*maps.values()]),
            origin=self.box.origin,
            spacing=np.full(3, self.box.spacing),
            types=self.types,
            receptor=self.path,
        )
        return check_pocket(pocket)

    # ---- maps that are kept -------------------------------------------------------------------

    @cached_property
    def key(self) -> str:
        """16 hex digits that differ where the maps do."""
        return digest([fitness.program(), self.receptor, self.box, self.types])

    def keep(
        self, folder: Path, devices: Sequence[Device] = (), cpu_fallback: bool = True
    ) -> Pocket:
        """Return the pocket that an earlier run has kept in a folder; else make it and keep it.

        The folder holds the maps of one pocket: those of others, of the same receptor in another
        box or as it was before, are removed when the new ones are complete.
        """
        field = folder / f"pocket-{self.key}{SUFFIX}"
        with suppress(InputError):  # there is none, or it is damaged
            kept = read_pocket(str(field))
            if kept.types == self.types:
                return kept
        pocket = self.make(devices, cpu_fallback)
        with failures_named(str(folder), UsageError):
            folder.mkdir(exist_ok=True)
        write_pocket(field, pocket)
        for old in folder.iterdir():
            if KEPT.fullmatch(old.name) and not old.name.startswith(field.name[: -len(SUFFIX)]):
                old.unlink(missing_ok=True)
        return replace(pocket, path=str(field))


def open_maps(
    path: str, box: Sequence[float] | None, spacing: float, options: MapOptions
) -> ReceptorMaps:
    """Return the maps that can be made of the receptor in a file.

    box: center and size, Å; None: around the ligand of the options

    Warns of what was left out of the receptor, chosen or guessed. Raises InputError, and UsageError
    for a box that cannot be, misses the receptor or is larger than memory.
    """
    if box is None:
        box = box_of_ligand(str(options.autobox), options.padding)
    points = box_around(box[:3], box[3:], spacing)
    usual, rare = KNOWN_TYPES[options.scoring or "autodock4"]
    receptor, notes = read_receptor(path, points.center, options.scoring != "vina")
    for note in notes:
        logger.warning("multigpu: %s: %s", path, spelled(note))
    others = options.other_types
    known = (*usual, *(rare if options.all_types else ()), *others.values())
    maps = ReceptorMaps(
        path=path,
        receptor=replace(receptor, types=tuple(others.get(x, x) for x in receptor.types)),
        box=points,
        types=tuple(dict.fromkeys(known)),
    )
    maps.check()
    return maps


def pocket_of(request: PocketRequest) -> Pocket:
    """Return the pocket that a request is about; see `open_maps` and `ReceptorMaps.make`."""
    (receptor,) = path_list(request.receptor, "receptor")
    maps = open_maps(receptor, request.box, request.spacing, request)
    pocket = maps.make(request.devices(), request.cpu_fallback)
    return with_other_types(pocket, request.other_types)


def folder_of_maps(receptor: str, output: str) -> Path:
    """Return where the maps of a receptor are kept: RECEPTOR.maps, beside the output."""
    name = PurePath(receptor).name
    if suffix := suffix_of(name, RECEPTORS):
        name = name[: name.lower().rindex(suffix)]
    name = "receptor" if name in ("", STDIN) else name
    return Path(output.rstrip("/")).parent / f"{name}.maps"


def with_other_types(pocket: Pocket, others: dict[str, str]) -> Pocket:
    """Return the pocket with maps of more types, which are those of others.

    others: type → the one whose map it gets. Raises UsageError where that has none.
    """
    if not others:
        return pocket
    if lacking := sorted(set(others.values()) - set(pocket.types)):
        one = f"{pocket.path} has no map of {', '.join(lacking)}"
        raise UsageError(f"{option('type_as')}: {one}: it has {', '.join(pocket.types) or 'none'}")
    kept = [kind for kind in pocket.types if kind not in others]
    sources = [*kept, *others.values()]
    energies = range(len(pocket.types), len(pocket.values))  # of charges, where it has some
    rows = [*map(pocket.types.index, sources), *energies]
    return replace(pocket, values=pocket.values[rows], types=(*kept, *others))
