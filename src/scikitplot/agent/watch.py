"""The time of a run: how long it has run, and what time it is.

Imports `values`. Rules that hold here:

* running time only grows, whatever the clock says, and stands still while a person is asked;
* a clock that fails is remembered as a fault, and the loop ends the run for it.
"""

from __future__ import annotations

from collections.abc import Callable

from .values import type_name

__all__ = ["Clock", "Watch"]

Clock = Callable[[], float]


class Watch:
    """The clocks of one session.

    Parameters
    ----------
    clock, now : callable
        Seconds for running time, and wall-clock time for the records.
    """

    __slots__ = ("_clock", "_last_clock", "_last_now", "_now", "fault", "seconds")

    def __init__(self, clock: Clock, now: Clock) -> None:
        self.seconds = 0.0  # of running time, over all sessions
        self.fault: str | None = None
        self._clock = clock
        self._now = now
        self._last_clock: float | None = None
        self._last_now = 0.0

    def tick(self) -> float:
        """Read the clock; return the run's running time in seconds."""
        reading = self._read("clock", self._clock)
        if reading is not None:
            last = self._last_clock
            if last is not None and reading > last:
                self.seconds += reading - last
            self._last_clock = reading
        return self.seconds

    def skip(self) -> None:
        """Let the time since the last reading not count: a person was asked."""
        self._last_clock = self._read("clock", self._clock)

    def time(self) -> float:
        """Return the wall-clock time, or the last one that could be told."""
        reading = self._read("now", self._now)
        if reading is not None:
            self._last_now = reading
        return self._last_now

    def _read(self, name: str, clock: Clock) -> float | None:
        try:
            reading = clock()
            if type(reading) is float and -1e18 < reading < 1e18:
                return reading
            if isinstance(reading, (int, float)) and not isinstance(reading, bool):
                reading = float(reading)
                if -1e18 < reading < 1e18:  # neither NaN nor infinite, and sums stay exact enough
                    return reading
                self.fault = f"{name} returned a number that is no time"
            else:
                self.fault = f"{name} returned a {type_name(reading)}, not a number of seconds"
        except Exception as error:
            self.fault = f"{name} raised {type_name(error)}"
        return None
