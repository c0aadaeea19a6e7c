"""How long does ``import multigrad`` take? Best of several fresh interpreters, NumPy's share apart."""

import subprocess
import sys

CODE = """
from time import perf_counter
start = perf_counter()
import numpy
middle = perf_counter()
import multigrad
print(middle - start, perf_counter() - middle)
"""
REPEATS = 7


def seconds() -> tuple[float, ...]:
    """NumPy's and our own share in a fresh interpreter."""
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return tuple(float(word) for word in run.stdout.split())


def main() -> None:
    numpy, own = min((seconds() for _ in range(REPEATS)), key=sum)
    print(f"import multigrad: {1e3 * (numpy + own):.1f} ms, of which NumPy {1e3 * numpy:.1f} ms (best of {REPEATS})")


if __name__ == "__main__":
    main()
