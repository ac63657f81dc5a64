"""Signals that stop the program: Ctrl-C, and those that batch systems and terminals send.

The first signal raises KeyboardInterrupt in the main thread, and everything is closed in order.
The process exits after a while even if something hangs, as if it were killed: files on disk are
safe against that.

RDKit takes SIGINT over while it embeds and matches molecules, and with several threads never gives
it back (its issue 8576). So SIGINT is blocked in all threads but one, which waits for it and sends
another signal in its place.
"""

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from typing import Any, NoReturn

ENDED_BY = 128  # plus the number of the signal: the exit status
IN_PLACE_OF_SIGINT = signal.SIGRTMIN
STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # batch systems and terminals send them
AGAIN_SECONDS = 0.01
# Far longer than the program waits for workers that hang, or for a disk.
LATE_SECONDS = 20.0


def listen() -> None:
    """Raise KeyboardInterrupt on signals that end the program, but for ignored ones (nohup)."""
    heard = [n for n in (signal.SIGINT, *STOPPING) if signal.getsignal(n) != signal.SIG_IGN]
    for number in heard:
        signal.signal(number, interrupt)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # Signals arrive in the pipe at once, whatever the main thread waits for.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if signal.SIGINT in heard:
        signal.signal(IN_PLACE_OF_SIGINT, lambda _, frame: interrupt(signal.SIGINT, frame))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # threads inherit it
        threading.Thread(target=_pass_on, name="sigint", daemon=True).start()
    threading.Thread(target=_end_late, args=(reader,), name="late", daemon=True).start()
    sys.unraisablehook = raise_again


def interrupt(number: int, _frame: object) -> None:
    """Raise KeyboardInterrupt; ignore later signals (systemd sends SIGHUP too), but not Ctrl-C."""
    for other in STOPPING:
        if signal.getsignal(other) == interrupt:
            signal.signal(other, _ignore)
    raise KeyboardInterrupt(number)


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing: the program is ending already."""


def _pass_on() -> NoReturn:
    """Wait for each SIGINT, and send the main thread the signal in its place."""
    while True:
        signal.sigwait({signal.SIGINT})
        signal.pthread_kill(threading.main_thread().ident or 0, IN_PLACE_OF_SIGINT)


def _end_late(reader: int) -> NoReturn:
    """Wait for a signal, and end the process later, whatever hangs: a lock, a driver, a disk."""
    number = os.read(reader, 1)[0]
    number = signal.SIGINT if number == IN_PLACE_OF_SIGINT else number
    time.sleep(LATE_SECONDS)
    reason = describe(KeyboardInterrupt(number))
    message = f"{reason}; not everything ended within {LATE_SECONDS:g} s"
    try:
        if select.select([], [2], [], 0)[1]:  # whoever reads it may have stopped
            if faulthandler.is_enabled():  # python -X faulthandler
                faulthandler.dump_traceback()
            os.write(2, f"multigpu: error: {message}\n".encode())
        # Not imported here: an import might be what hangs.
        workers = sys.modules.get("multigpu.cluster.deploy.dask_clients")
        if workers is not None:
            workers.kill_workers("")
    finally:
        os._exit(ENDED_BY + number)


def signal_of(error: BaseException | None) -> signal.Signals:
    """Return the signal that an error stands for; Python's own KeyboardInterrupt is SIGINT."""
    if isinstance(error, KeyboardInterrupt) and error.args:
        return signal.Signals(error.args[0])
    return signal.SIGINT


def describe(error: BaseException | None) -> str:
    """Return in words what ended the program."""
    number = signal_of(error)
    return "interrupted" if number == signal.SIGINT else f"ended by {number.name}"


def raise_again(ignored: Any) -> None:
    """Send a signal again whose exception C code ignored, as Numba's compiler does."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    number = signal_of(ignored.exc_value)
    if number != signal.SIGINT:
        signal.signal(number, interrupt)
    threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number)).start()


def stop_listening() -> None:
    """Ignore Ctrl-C, and let other signals end the process at once: nothing is left to close."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in STOPPING:  # whoever reads our output may never do so
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
