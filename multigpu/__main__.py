"""`python -m multigpu`, and the console script."""

import gc
import os
import signal
import sys
import threading
from typing import Any

INTERRUPTED = 130
OBJECTS_BEFORE_GARBAGE = 100_000  # loading makes many and throws none away: a sixth of its time
AGAIN_SECONDS = 0.01
SWITCH_SECONDS = 0.0005  # what a thread that decompresses waits for one that loads modules


def run() -> None:
    """The command line; Ctrl-C while its modules load is Ctrl-C, too."""
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE)
    sys.setswitchinterval(SWITCH_SECONDS)
    _hold_standard_files()
    sys.unraisablehook = not_lost
    try:
        from multigpu.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("multigpu: error: interrupted\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    main()


def not_lost(ignored: Any) -> None:
    """Ctrl-C that a callback of a C library, as Numba's compiler has them, ignores comes again."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


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
