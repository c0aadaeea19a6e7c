"""The list of problems that conformance tests, planted bugs and benchmarks share."""

from tests.problems import complex_numbers, elementwise, linear_algebra, models, reductions, structure
from tests.problems.problem import Problem

PROBLEMS: tuple[Problem, ...] = (
    *elementwise.PROBLEMS,
    *linear_algebra.PROBLEMS,
    *reductions.PROBLEMS,
    *models.PROBLEMS,
    *complex_numbers.PROBLEMS,
    *structure.PROBLEMS,
)
