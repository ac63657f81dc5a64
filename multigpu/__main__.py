"""Entry of the program: `python -m multigpu`, and the console script."""

import contextlib
import gc
import os
import sys

from multigpu.run import signals

# Imports make many objects and drop none: collecting garbage would take a sixth of their time.
OBJECTS_BEFORE_GARBAGE = 100_000


def run() -> None:
    """Run the command line; Ctrl-C works while its modules are imported, too."""
    _hold_standard_files()
    signals.listen()
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE)
    try:
        from multigpu.cli import main
    except KeyboardInterrupt as error:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"multigpu: error: {signals.describe(error)}\n")
            sys.stderr.flush()
        os._exit(signals.ENDED_BY + signals.signal_of(error))
    main()


def _hold_standard_files() -> None:
    """Open the null device for each closed standard file: no later file may have its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - as long as the process


if __name__ == "__main__":
    run()
