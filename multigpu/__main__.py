"""`python -m multigpu`, and the console script."""

import contextlib
import gc
import os
import signal
import sys
import threading
from typing import Any

ENDED_BY = 128  # and the number of the signal is the exit status
STOPPING = (signal.SIGTERM, signal.SIGHUP)  # of batch systems and terminals: as Ctrl-C
OBJECTS_BEFORE_GARBAGE = 100_000  # loading makes many and throws none away: a sixth of its time
AGAIN_SECONDS = 0.01
SWITCH_SECONDS = 0.0005  # what a thread that decompresses waits for one that loads modules


def run() -> None:
    """The command line; Ctrl-C while its modules load is Ctrl-C, too."""
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, interrupt)
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE)
    sys.setswitchinterval(SWITCH_SECONDS)
    _hold_standard_files()
    sys.unraisablehook = not_lost
    try:
        from multigpu.cli import main
    except KeyboardInterrupt as error:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"multigpu: error: {how(error)}\n")
            sys.stderr.flush()
        os._exit(ENDED_BY + signal_of(error))
    main()


def interrupt(number: int, _frame: object) -> None:
    """The way of Ctrl-C. What comes after the first, as systemd's SIGHUP, must not disturb it."""
    for other in STOPPING:
        if signal.getsignal(other) == interrupt:
            signal.signal(other, _known)
    raise KeyboardInterrupt(number)


def _known(_number: int, _frame: object) -> None:
    """The program is ending already."""


def signal_of(error: BaseException | None) -> signal.Signals:
    """That by which it ended. Python's own KeyboardInterrupt has no number."""
    if isinstance(error, KeyboardInterrupt) and error.args:
        return signal.Signals(error.args[0])
    return signal.SIGINT


def how(error: BaseException | None) -> str:
    number = signal_of(error)
    return "interrupted" if number == signal.SIGINT else f"ended by {number.name}"


def not_lost(ignored: Any) -> None:
    """Ctrl-C that a callback of a C library, as Numba's compiler has them, ignores comes again."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    number = signal_of(ignored.exc_value)
    if number != signal.SIGINT:
        signal.signal(number, interrupt)
    threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number)).start()


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
