"""What torch's engine refuses in a backward pass, by the words it says it in."""

from __future__ import annotations

import re

from multigrad.errors import Defect, Unsupported, first_line
from multigrad.findings import Finding

# What torch's engine says of a backward that returns no gradients of its arguments, and what is made of it.
_REFUSALS = {
    r"function (\S+) returned an invalid gradient at index (\d+) - got (.*) but expected .*?(\[.*?\])": (
        "{0} returns a gradient of shape {2} for its argument {1}, which has shape {3}"
    ),
    r"function (\S+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)": (
        "{0} returns {2} gradients for {1} arguments"
    ),
    r"expected Variable or None \(got (.*)\)": "a backward returns a {0} where a tensor or None is due",
    r"isFloatingType\(grad\.scalar_type\(\)\)": (
        "a backward returns a complex gradient for a real argument, or one of integers for a complex argument"
    ),
}

# Torch tells by itself where a loss depends on the free phase of eigenvectors.
_ILL_DEFINED = ("it is ill-defined", "it ill-defined")

_NO_REVERSE_MODE = ("no autograd formula was registered", "derivative for", "once_differentiable")


def explained(error: RuntimeError) -> Exception:
    """What is raised in its place: a defect of the code under test, a mode it lacks, or the error itself."""
    if any(text in str(error) for text in _ILL_DEFINED):
        remedy = "make the value independent of what is free: the phase or the basis of the vectors"
        return Defect(Finding("ill_defined", first_line(error), where="reverse", remedy=remedy))
    if any(text in str(error) for text in _NO_REVERSE_MODE):
        return Unsupported(f"no reverse mode: {first_line(error)}")
    for pattern, evidence in _REFUSALS.items():
        if match := re.search(pattern, str(error), re.IGNORECASE):
            remedy = "return one gradient for each argument of the forward, in its shape, real where it is real"
            return Defect(Finding("wrong_shape", evidence.format(*match.groups()), where="reverse", remedy=remedy))
    return error
