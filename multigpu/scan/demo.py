"""The built-in demo: a few megabytes of generated samples, about a third of them infected."""

from pathlib import Path

from multigpu.formats.sequences.signatures import read_signatures
from multigpu.scan.simulate import samples, signatures

SEED = 1


def demo_files(folder: Path) -> tuple[Path, Path]:
    """Write samples.fastq and signatures.fasta (always the same bytes) and tell where they are.

    folder  made where it is missing; files of these names are replaced
    returns the samples' path and the signatures' path
    """
    folder.mkdir(parents=True, exist_ok=True)
    searched, wanted = folder / "samples.fastq", folder / "signatures.fasta"
    with wanted.open("wb") as out:
        signatures(out, count=40, min_length=300, max_length=1000, n_ratio=0.1, seed=SEED)
    with searched.open("wb") as out:
        samples(
            out,
            read_signatures([str(wanted)]).letters,
            clean=40,
            infected=20,
            min_signatures=1,
            max_signatures=3,
            min_length=20_000,
            max_length=60_000,
            min_phred=10,
            max_phred=30,
            n_ratio=0.1,
            seed=SEED,
        )
    return searched, wanted
