"""What JAX says when a derivative rule is missing or malformed, in multigrad's words."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from multigrad.backends import Array, Leaf
from multigrad.errors import Defect, Unsupported, first_line
from multigrad.findings import Finding
from multigrad_jax._trees import epsilon

# JAX has one exception type for many things; these words tell a mode that a function lacks from a fault in a rule.
_LACKS = (
    "Reverse-mode differentiation does not work",
    "callbacks do not support JVP",
    "can't apply forward-mode autodiff",
    "can't apply forward-mode differentiation",
    "transpose_solve required",
    "gradient with respect to",
)
_JAX, _HERE = os.path.dirname(jax.__file__), os.path.dirname(__file__)
_MALFORMED = ("Custom VJP bwd rule", "Custom VJP fwd rule", "Custom JVP rule")


@contextmanager
def translated(mode: str) -> Iterator[None]:
    """Raise what JAX means: ``Unsupported``, or a ``Defect`` for a rule of the wrong shape.

    The user's own exceptions, in a ``bwd`` say, come through as they are. Where JAX itself breaks down, as it does over
    a product of two tangents that it is to transpose, it has no such mode.
    """
    try:
        yield
    except (NotImplementedError, jax.errors.JAXTypeError) as error:
        raise Unsupported(f"JAX has no {mode} mode for this function: {error}") from error
    except Defect as error:
        raise Defect(replace(error.finding, kind="wrong_shape", where=f"{mode} rule", remedy="")) from error
    except (TypeError, ValueError) as error:
        text = str(error)
        if any(words in text for words in _LACKS):
            raise Unsupported(f"JAX has no {mode} mode for this function: {text}") from error
        if any(words in text for words in _MALFORMED):
            raise Defect(Finding("wrong_shape", text, where=f"{mode} rule")) from error
        raise
    except Exception as error:
        if not _within_jax(error):
            raise
        what = f"JAX itself raises {type(error).__name__}: {first_line(error)}".rstrip(": ")
        reason = "a rule that is not linear in the tangents, or that needs what was donated, has none"
        raise Unsupported(f"JAX has no {mode} mode for this function: {what} ({reason})") from error


def _within_jax(error: Exception) -> bool:
    """Whether no code but JAX's was running since this package called it."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    others = [file for file in files if not file.startswith(_JAX)]
    return files[-1:] != others[-1:] and others[-1:] != [] and others[-1].startswith(_HERE)


def check_primals(primals: Sequence[Any], plain: Array, outputs: Sequence[Leaf], mode: str) -> list[Finding]:
    """Compare the values that a derivative rule returns beside the derivative with the plain call's, ``plain`` (m,).

    A rule may compute the value another way (a stabler formula, another order of a sum), and where terms cancel the
    two then differ by far more than an ulp of the value. So the cube root of the unit roundoff is allowed, of the
    largest entry: this looks for a rule that belongs to another function, not for rounding.

    Raises:
        Defect: ``wrong_shape``, a value of another shape.
    """
    findings = []
    for primal, leaf in zip(primals, outputs, strict=True):
        value = np.asarray(primal)
        if value.shape != leaf.shape:
            evidence = f"the rule's value has shape {value.shape}, the plain call's {leaf.shape}"
            raise Defect(Finding("wrong_shape", evidence, where=f"{leaf.path}, {mode} rule"))
        findings += _compare(value, plain[leaf.slice], leaf, mode)
    return findings


def _compare(value: Any, plain: Array, leaf: Leaf, mode: str) -> list[Finding]:
    eps = epsilon(leaf.dtype)
    wide = np.ascontiguousarray(value, np.complex128 if leaf.complex else np.float64).reshape(-1).view(np.float64)
    finite = np.isfinite(plain)
    scale = np.max(np.abs(plain), where=finite, initial=0.0)
    with np.errstate(invalid="ignore"):
        agree = (wide == plain) | (np.isnan(wide) & np.isnan(plain)) | (np.abs(wide - plain) <= eps ** (1 / 3) * scale)
    if agree.all():
        return []
    k = int(np.argmin(agree))
    return [
        Finding(
            "primal_mismatch",
            f"the {mode} rule's own value is {float(wide[k])!r}, the plain call's {float(plain[k])!r}"
            f" ({np.count_nonzero(~agree)} of {len(agree)} entries differ)",
            where=leaf.place(leaf.start + k),
            remedy="the rule (fwd of a custom_vjp, the first result of a custom_jvp) must return the function's own value",
        )
    ]
