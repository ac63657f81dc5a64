"""How the program is stopped: Ctrl-C, and what batch systems and terminals send.

The first signal is a KeyboardInterrupt in the main thread, and all that was begun is ended in good
order. What does not end is left behind after a while, as when the process is killed: everything on
disk bears that.
"""

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from typing import Any, NoReturn

ENDED_BY = 128  # and the number of the signal is the exit status
STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # batch systems and terminals send them
AGAIN_SECONDS = 0.01
LATE_SECONDS = 20.0  # far longer than workers that hang are waited for, or a disk


def listen() -> None:
    """Signals that end the program raise KeyboardInterrupt, but those that are ignored (nohup)."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)  # at once, whatever Python waits for
    threading.Thread(target=_end_late, args=(told,), name="late", daemon=True).start()
    for number in (signal.SIGINT, *STOPPING):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    sys.unraisablehook = not_lost


def interrupt(number: int, _frame: object) -> None:
    """What comes after the first, as systemd's SIGHUP, must not disturb its way; Ctrl-C may."""
    for other in STOPPING:
        if signal.getsignal(other) == interrupt:
            signal.signal(other, _known)
    raise KeyboardInterrupt(number)


def _known(_number: int, _frame: object) -> None:
    """The program is ending already."""


def _end_late(told: int) -> NoReturn:
    """After a signal the program ends, whatever hangs: a lock, a driver, a disk, the network."""
    number = os.read(told, 1)[0]
    time.sleep(LATE_SECONDS)
    said = f"{how(KeyboardInterrupt(number))}; what did not end within {LATE_SECONDS:g} s is left"
    try:
        if select.select([], [2], [], 0)[1]:  # whoever reads it may have stopped
            if faulthandler.is_enabled():  # python -X faulthandler
                faulthandler.dump_traceback()
            os.write(2, f"multigpu: error: {said}\n".encode())
        # Not imported here: an import might be what hangs.
        clients = sys.modules.get("multigpu.cluster.deploy.clients")
        if clients is not None:
            clients.kill_workers("")
    finally:
        os._exit(ENDED_BY + number)


def signal_of(error: BaseException | None) -> signal.Signals:
    """That by which it ended. Python's own KeyboardInterrupt has no number."""
    if isinstance(error, KeyboardInterrupt) and error.args:
        return signal.Signals(error.args[0])
    return signal.SIGINT


def how(error: BaseException | None) -> str:
    number = signal_of(error)
    return "interrupted" if number == signal.SIGINT else f"ended by {number.name}"


def not_lost(ignored: Any) -> None:
    """An interrupt that a callback of a C library, as Numba's compiler has them, ignores: again."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    number = signal_of(ignored.exc_value)
    if number != signal.SIGINT:
        signal.signal(number, interrupt)
    threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number)).start()


def end_of_program() -> None:
    """Nothing is left that must be ended: Ctrl-C is too late, and other signals end it at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in STOPPING:  # whoever reads our output may never do so
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
