"""Use the installed wheel where torch is not installed. Called by .ci/wheel with the path of the checkout."""

import importlib.util
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import multigrad
from multigrad.backends import available_backends, get_backend
from multigrad.errors import BackendUnavailable, GradientMismatch

checkout = Path(sys.argv[1]).resolve()
assert checkout not in Path(multigrad.__file__).resolve().parents, f"not the wheel: {multigrad.__file__}"
assert importlib.util.find_spec("torch") is None, "torch is installed here"

print("backends:", *available_backends())
assert {"jax", "numpy", "torch"} <= set(available_backends())

x = np.array([0.3, -1.2, 2.0])
report = multigrad.check_grad(lambda v: jnp.tanh(v) * v, x, backend="jax")
print("jax:", report.verdict)
assert report.verdict == "ok", report
report = multigrad.check_grad(np.sin, x, backend="numpy", jac=lambda v: np.diag(np.cos(v)))
print("numpy:", report.verdict)
assert report.verdict == "ok", report
try:
    multigrad.check_grad(np.sin, x, backend="numpy", jac=lambda v: np.diag(-np.cos(v)))
except GradientMismatch:
    print("numpy, planted sign: mismatch")
else:
    raise SystemExit("a wrong gradient passed")
try:
    get_backend("torch")
except BackendUnavailable as error:
    print("torch:", error)
    assert "'torch'" in str(error)
else:
    raise SystemExit("backend 'torch' loads without torch")
