"""A watchdog for what must end: it barks in the process itself, after so much computing."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_once(seconds: float = 10) -> Iterator[None]:
    """A guard, not a measurement: what takes milliseconds here took 40 seconds of computing once, or for ever."""

    def bark(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"still computing after {seconds} s")

    earlier = signal.signal(signal.SIGPROF, bark)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)
