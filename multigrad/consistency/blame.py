"""Blame: which of several sides is the odd one out, and by what evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

Groups = list[list[str]]

NUMERICAL = "by the numerical witness"
MAJORITY = "by majority"
REFERENCE = "by the reference"


def groups(names: Sequence[str], agree: Callable[[str, str], bool]) -> Groups:
    """Sort the sides into groups that agree with one another, the largest first."""
    found: Groups = []
    for name in names:
        home = next((group for group in found if all(agree(name, other) for other in group)), None)
        if home is None:
            found.append([name])
        else:
            home.append(name)
    return sorted(found, key=len, reverse=True)


def right_group(found: Groups, reference: str | None) -> list[str]:
    """The group that the others are measured by: the reference's, or the only largest one; empty if there is none."""
    if reference is not None:
        return next((group for group in found if reference in group), [])
    tie = len(found) > 1 and len(found[0]) == len(found[1])
    return found[0] if found and not tie else []


def blame(
    values: Groups, derivatives: Groups, refuted: Collection[str], foreign: Collection[str], reference: str | None
) -> Mapping[str, str]:
    """Name the odd ones out, each with the evidence.

    Args:
        values: the sides grouped by their values.
        derivatives: the right group of values grouped by the derivatives.
        refuted: whose derivative is not that of its own function.
        foreign: whose derivative is that of another's function: its own forward code is wrong.
        reference: the side that counts as right, if any does.
    """
    blamed = dict.fromkeys((name for name in refuted if name != reference), NUMERICAL)
    for found in (values, derivatives):
        right = right_group(found, reference)
        reason = REFERENCE if reference is not None else MAJORITY
        if right:
            blamed |= {
                n: reason if n not in blamed else f"{reason} and {blamed[n]}"
                for g in found
                for n in g
                if n not in right
            }
        elif len(found) > 1:
            blamed |= dict.fromkeys((name for name in foreign if name not in blamed), NUMERICAL)
    return blamed
