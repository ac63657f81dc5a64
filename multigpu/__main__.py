"""`python -m multigpu`, and the console script."""

import os
import sys

INTERRUPTED = 130


def run() -> None:
    """The command line; Ctrl-C while its modules load is Ctrl-C, too."""
    try:
        from multigpu.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("multigpu: error: interrupted\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    main()


if __name__ == "__main__":
    run()
