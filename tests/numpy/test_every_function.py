"""No public function of NumPy is forgotten: it is tried in ``surface``, needs no derivative, or is refused by name."""

from __future__ import annotations

import re
import warnings
from types import ModuleType

import numpy as np
import pytest

from multigrad.backends import Options
from multigrad.errors import Unsupported
from multigrad_numpy import NumpyBackend
from tests.numpy.surface import CASES

SPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}

# Nothing here is a function of an array of floats.
OTHER = frozenset(
    [
        "asmatrix",
        "base_repr",
        "binary_repr",
        "bitwise_count",
        "bitwise_invert",
        "bitwise_left_shift",
        "bitwise_not",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
        "bmat",
        "busday_count",
        "busday_offset",
        "datetime_as_string",
        "datetime_data",
        "from_dlpack",
        "frombuffer",
        "fromfile",
        "fromiter",
        "fromregex",
        "fromstring",
        "genfromtxt",
        "get_include",
        "get_printoptions",
        "getbufsize",
        "geterr",
        "geterrcall",
        "info",
        "is_busday",
        "isnat",
        "lcm",
        "left_shift",
        "load",
        "loadtxt",
        "mintypecode",
        "nested_iters",
        "packbits",
        "unpackbits",
        "printoptions",
        "right_shift",
        "save",
        "savetxt",
        "savez",
        "savez_compressed",
        "set_printoptions",
        "setbufsize",
        "seterr",
        "seterrcall",
        "show_config",
        "show_runtime",
        "test",
        "row_stack",
        "diag_indices_from",
        "tril_indices_from",
        "triu_indices_from",
        "typename",
    ]
)

REFUSED = {
    "np.histogram(x)": "np.histogram would drop the gradient",
    "np.histogram(np.arange(3.0), weights=x)": "np.histogram would drop the gradient",
    "np.histogram2d(x, x)": "np.histogram2d would drop the gradient",
    "np.histogramdd(x[:, None])": "np.histogramdd would drop the gradient",
    "np.histogram_bin_edges(x)": "np.histogram_bin_edges has no derivative rule",
}


def _public(space: ModuleType) -> list[str]:
    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dir(space):
            thing = getattr(space, name)
            if not name.startswith("_") and callable(thing) and not isinstance(thing, type):
                names.append(name)
    return names


@pytest.mark.parametrize("prefix", SPACES)
def test_every_function_is_accounted_for(prefix: str) -> None:
    text = " ".join([case.text for case in CASES] + list(REFUSED))
    tried = {n for n in _public(SPACES[prefix]) if re.search(rf"\b{re.escape(prefix)}\.{n}\b", text)}
    assert set(_public(SPACES[prefix])) - tried - OTHER == set()


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_drop_a_gradient_is_refused(text: str) -> None:
    function = eval(f"lambda x: ({text}, x * 1.0)[1]", {"np": np, "__name__": "users_code"})
    with pytest.raises(Unsupported, match=re.escape(REFUSED[text])):
        NumpyBackend().flatten(function, (np.array([0.3, 1.2, 0.7]),), Options())
