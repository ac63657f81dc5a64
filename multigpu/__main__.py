"""`python -m multigpu`, and the console script."""

import contextlib
import gc
import os
import sys

from multigpu.run import signals

OBJECTS_BEFORE_GARBAGE = 100_000  # loading makes many and throws none away: a sixth of its time
SWITCH_SECONDS = 0.0005  # what a thread that decompresses waits for one that loads modules


def run() -> None:
    """The command line; Ctrl-C while its modules load is Ctrl-C, too."""
    _hold_standard_files()
    signals.listen()
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        from multigpu.cli import main
    except KeyboardInterrupt as error:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"multigpu: error: {signals.how(error)}\n")
            sys.stderr.flush()
        os._exit(signals.ENDED_BY + signals.signal_of(error))
    main()


def _hold_standard_files() -> None:
    """Where one of the three is closed, no file that is opened later may have its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - as long as the process


if __name__ == "__main__":
    run()
