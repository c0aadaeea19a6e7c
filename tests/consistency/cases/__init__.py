"""The functions of the suite, by subject."""

from tests.consistency.case import Case
from tests.consistency.cases import (
    activations,
    attention,
    complex_numbers,
    convolutions,
    fourier,
    linear_algebra,
    losses,
    norms,
    recurrences,
    sorting,
    special,
    statistics,
)

MODULES = (
    activations,
    attention,
    complex_numbers,
    convolutions,
    fourier,
    linear_algebra,
    losses,
    norms,
    recurrences,
    sorting,
    special,
    statistics,
)

CASES: list[Case] = [case for module in MODULES for case in module.CASES]
