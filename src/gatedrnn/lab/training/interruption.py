"""Ctrl-C between two updates, or a reader that closes the output: nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the run is to end after this update, and with what."""

    asked = False
    cause: BaseException | type[BaseException] = KeyboardInterrupt


@contextmanager
def deferred() -> Iterator[Interruption]:
    """Inside the ``with`` the first Ctrl-C only sets ``asked``; a second one interrupts at once, as always.

    Only the main thread hears signals; elsewhere nothing changes.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        interruption.asked = True
        signal.signal(signal.SIGINT, before)

    if before is signal.default_int_handler:  # another handler is left in place
        signal.signal(signal.SIGINT, ask)
    try:
        yield interruption
    finally:
        if signal.getsignal(signal.SIGINT) is ask:
            signal.signal(signal.SIGINT, before)
