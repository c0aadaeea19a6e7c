"""Progress: how far a check is, as a bar on a terminal once it takes long, and as a note on an interrupt."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Self

# Checks that are shorter show nothing.
SECONDS = 1.0


class Progress:
    """A context in which a check tells how far it is.

    Args:
        wanted: whether to show it; None means on a terminal only, and not in continuous integration.
    """

    def __init__(self, wanted: bool | None = None) -> None:
        self._wanted = wanted
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._last = "before anything was compared"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            seconds = time.monotonic() - self._begun
            error.add_note(f"check_grad was interrupted after {seconds:.1f} s, {self._last}; your state is as it was")

    def __call__(self, what: str, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` of something are finished."""
        self._last = f"with {what}: {done} of {total} done"
        if self._bar is None and self._is_time():
            from rich.progress import Progress as Bar

            self._bar = Bar(transient=True, redirect_stdout=False, redirect_stderr=False, console=_console())
            self._bar.start()
            self._task = self._bar.add_task(what, total=total)
        if self._bar is not None:
            self._bar.update(self._task, description=what, completed=done, total=total)

    def _is_time(self) -> bool:
        if self._wanted is None:
            self._wanted = sys.stderr.isatty() and not os.environ.get("CI")
        return self._wanted and time.monotonic() - self._begun > SECONDS


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True, force_terminal=True)
