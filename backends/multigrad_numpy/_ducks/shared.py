"""What is done alike for every kind of duck array, by identity of NumPy's function."""

from __future__ import annotations

from multigrad_numpy._ducks import creation, movement, writing

SHARED = movement.HANDLERS | creation.HANDLERS | writing.HANDLERS
