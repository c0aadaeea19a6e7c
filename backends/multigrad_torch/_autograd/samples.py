"""Random samples whose gradient torch gives implicitly: right in the mean, and not that of the sample's own values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from multigrad.findings import Finding

# By the nodes that they leave in a graph. Beta is made of the second, and chi-squared, Student's t and others of the first.
IMPLICIT = frozenset({"StandardGammaBackward0", "_DirichletBackward"})

REPARAMETERISED = Finding(
    "convention",
    "torch differentiates a sample of the gamma and the Dirichlet distribution implicitly (gamma, beta, chi2, student_t, "
    "...): right for the mean over many seeds, but not the derivative of this sample for this seed, which the numerical "
    "side gives",
    remedy="check the function of the samples, with these as an input",
)


def samples_implicitly(outputs: Sequence[Tensor]) -> bool:
    """Whether there is such a sample in the graph of the outputs."""
    return any(node.name() in IMPLICIT for node in _nodes(outputs))


def _nodes(outputs: Sequence[Tensor]) -> Iterator[Any]:
    waiting = [output.grad_fn for output in outputs]
    met = set(waiting)
    while waiting:
        node = waiting.pop()
        if node is not None:
            yield node
            new = {one for one, _ in node.next_functions} - met
            met |= new
            waiting += new
