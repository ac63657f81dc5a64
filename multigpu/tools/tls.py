"""`multigpu tls`: credentials for a Dask cluster, and the settings by which it uses them."""

import json
import os
from pathlib import Path

import click

from multigpu.cluster.engine.output import failures_named
from multigpu.errors import UsageError
from multigpu.run.command import FILE

SETTINGS = """\
# Settings of Dask for one cluster, made by `multigpu tls`; docs/clusters.md explains them.
# `export DASK_CONFIG=FOLDER` has dask scheduler, dask worker and multigpu use them.
distributed:
  comm:
    default-scheme: tls
    require-encryption: true
    tls:
      ca-file: {cert}
      scheduler: {{cert: {cert}, key: {key}}}
      worker: {{cert: {cert}, key: {key}}}
      client: {{cert: {cert}, key: {key}}}
    timeouts: {{connect: 10s, tcp: 15s}}  # tcp: until a dead connection counts as one
  scheduler:
    worker-ttl: 30s  # until a worker that says nothing is given up
    work-stealing: false
    preload: [multigpu.cluster.deploy.connections]
  nanny:
    preload: [multigpu.cluster.deploy.connections]
  worker:
    preload: [multigpu.cluster.deploy.connections]
    memory: {{target: false, spill: false, pause: false, terminate: false}}
"""


@click.command()
@click.argument("folder", type=FILE, metavar="DIR")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def command(folder: str, debug: bool) -> None:
    """Make credentials for a Dask cluster, in a new folder that only you can read.

    `export DASK_CONFIG=DIR`, wherever scheduler, workers and multigpu run, has them use TLS with
    nobody else. The credentials are valid for a year.
    """
    from distributed.security import Security

    made, place = Security.temporary(), Path(folder).absolute()
    cert, key = place / "cert.pem", place / "key.pem"
    settings = SETTINGS.format(cert=json.dumps(str(cert)), key=json.dumps(str(key)))
    texts = {cert: made.tls_worker_cert, key: made.tls_worker_key, place / "dask.yaml": settings}
    with failures_named(folder, UsageError):
        place.mkdir(mode=0o700)
        for path, text in texts.items():
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(text)
    click.echo(f"multigpu: credentials for a year; export DASK_CONFIG={place}", err=True)
