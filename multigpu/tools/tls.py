"""`multigpu tls`: credentials for a Dask cluster, and the settings by which it uses them."""

import json
import os
from importlib import resources
from pathlib import Path

import click

from multigpu.cluster.files import failures_named
from multigpu.errors import UsageError
from multigpu.run.command import FILE


@click.command()
@click.argument("folder", type=FILE, metavar="DIR")
def command(folder: str) -> None:
    """Make credentials for a Dask cluster, in a new folder that only you can read.

    `export DASK_CONFIG=DIR`, wherever scheduler, workers and multigpu run, has them use TLS with
    nobody else. The credentials are valid for a year.
    """
    from distributed.security import Security

    if not folder:
        raise UsageError("the folder for the credentials has no name")
    made, place = Security.temporary(), Path(folder).absolute()
    settings = resources.files("multigpu.cluster.deploy").joinpath("tls.yaml").read_text()
    texts = {
        "cert.pem": made.tls_worker_cert,
        "key.pem": made.tls_worker_key,
        "tls.yaml": settings.replace("DIR", json.dumps(str(place))[1:-1]),
    }
    with failures_named(folder, UsageError):
        place.mkdir(mode=0o700)
        for name, text in texts.items():
            with os.fdopen(os.open(place / name, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(text)
    click.echo(f"multigpu: credentials for a year: export DASK_CONFIG={place}", err=True)
