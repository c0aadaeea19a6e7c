"""What is done alike for every kind of duck array, by identity of NumPy's function."""

from __future__ import annotations

from multigrad_numpy import _creation, _movement, _writing

SHARED = _movement.HANDLERS | _creation.HANDLERS | _writing.HANDLERS
