"""`python -m multigpu`, and the console script."""

import gc
import os
import sys

INTERRUPTED = 130
OBJECTS_BEFORE_GARBAGE = 100_000  # loading makes many and throws none away: a sixth of its time
SWITCH_SECONDS = 0.0005  # what a thread that decompresses waits for one that loads modules


def run() -> None:
    """The command line; Ctrl-C while its modules load is Ctrl-C, too."""
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        from multigpu.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("multigpu: error: interrupted\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    main()


if __name__ == "__main__":
    run()
