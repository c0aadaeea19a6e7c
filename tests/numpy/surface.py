"""Expressions over NumPy's whole public surface, each a function of one array, with the points to try them at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Point = np.ndarray[Any, Any]

POINTS: dict[str, Point] = {
    "v": np.array([0.32, -1.28, 0.82, 2.21, -0.58]),
    "p": np.array([0.32, 1.27, 0.82, 2.21, 0.58]),  # positive
    "u": np.array([0.31, -0.67, 0.83, 0.19, -0.56]),  # within (-1, 1)
    "w": np.array([1.31, 2.27, 1.83, 3.19, 1.56]),  # above 1
    "s": np.array(0.73),
    "o": np.array([0.37]),
    "A": np.array([[0.31, -1.27, 0.83, 2.19], [-0.56, 1.41, 0.22, -0.91], [1.93, 0.64, -1.13, 0.87]]),
    "S": np.array([[2.31, -0.27, 0.83], [0.56, 1.41, -0.22], [-0.93, 0.64, 3.13]]),  # well conditioned
    "B": np.array([[[2.3, 0.4], [-0.6, 1.9]], [[1.7, -0.3], [0.2, 2.6]], [[3.1, 0.9], [0.5, 1.2]]]),  # a stack
    "C": (np.random.default_rng(3).permutation(24) * 0.23 - 1.9).reshape(2, 3, 4),
    "z": np.array([0.31 + 0.7j, -1.27 - 0.4j, 0.83 + 1.1j]),
    "Z": np.array([[2.3 + 0.4j, -0.6 - 0.2j], [0.7 + 0.9j, 1.9 - 0.8j]]),
}

_UNARY = {
    "v": "negative positive absolute fabs exp exp2 expm1 sin cos tan arctan sinh cosh tanh arcsinh square cbrt degrees radians "
    "deg2rad rad2deg conjugate conj reciprocal sign floor ceil trunc rint sinc i0 spacing nan_to_num fix real imag angle abs",
    "p": "sqrt log log2 log10 log1p",
    "u": "arcsin arccos arctanh asin acos atanh",
    "w": "arccosh acosh",
    "z": "negative positive absolute exp expm1 sin cos tan arctan sinh cosh tanh arcsinh square conjugate reciprocal sqrt log log2 "
    "log10 log1p arcsin arccos arctanh arccosh sign real imag angle exp2 abs",
}
_BINARY = (
    "add subtract multiply divide true_divide maximum minimum fmax fmin hypot arctan2 atan2 logaddexp logaddexp2 copysign "
    "fmod remainder mod floor_divide nextafter heaviside"
)

_REDUCING = "sum mean prod max min std var ptp median nansum nanmean nanprod nanmax nanmin nanstd nanvar nanmedian amax amin average"
_AXES = ("", ", axis=0", ", axis=1", ", axis=-1, keepdims=True", ", axis=(0, 1)", ", axis=None, keepdims=True")
_WHERE = "sum mean prod std var"

EXPRESSIONS: dict[str, list[str]] = {
    # Operators, methods, attributes.
    "v": """
        x + 1 | 1 - x | x * x | x / 3 | 2 / x | -x | +x | abs(x) | x ** 2 | x ** 3 | x ** -1 | x ** 2.0 | 2.0 ** x | x % 0.7
        x // 0.7 + x | divmod(x, 0.7)[1] | x @ x | np.arange(5.0) @ x | x @ np.ones((5, 2)) | x.dot(x) | x * (x > 0)
        (x > 0) * 1.0 + x | np.where(x > 0, x, x ** 2) | x[x > 0] | x[np.array([0, 0, 3])] | x[[1, -1]] | x[2] | x[1:4] | x[::-1]
        x[::2] | x[-2:] | x[None] | x[..., None] | x[np.newaxis, 1:] | x[()] | x[np.array([[0, 1], [2, 4]])] | x[x.argsort()] * x
        x.sum() | x.mean() | x.prod() | x.max() | x.min() | x.std() | x.var() | x.cumsum() | x.cumprod() | x.clip(-0.5, 1.0)
        x.reshape(5, 1) | x.reshape((1, -1)) | x.ravel() | x.flatten() | x.T | x.copy() | x.astype(float) | x.astype("f8")
        x.astype(complex) * 1j | x.repeat(2) | x.take([0, 2]) | x.round(1) + x | x.squeeze() | x.tolist()[1] * x | x.item(2) * x
        x.conj() | x.conjugate() | x.real | x.imag + x | x.flat[1] * x | x.compress(x > 0)
        x.argmax() + x | x.nonzero()[0] * x[:5] | x.searchsorted(0.0) + x | x.any() + x | len(x) * x
        x.choose([x, x]) if False else x * 2 | x.swapaxes(0, 0) | np.array([e * 2 for e in x]) | sum(x) | max(x) | min(x) | sorted(x)[1] * x
        x.size * x | x.ndim * x | x.nbytes * x | x.itemsize * x | x.dtype.itemsize * x | round(x[0], 1) + x[0] | int(x[3]) * x[0]
        np.power(x, 2) | np.power(x, [1, 2, 3, 2, 1]) | np.float_power(x, 2) | np.power(np.abs(x), x) | np.square(x, dtype=float)
        np.add(x, [1, 2, 3, 4, 5]) | np.multiply(x, 2, out=np.zeros(5)) | np.add(x, x, where=np.array([1, 0, 1, 0, 1], bool), out=np.ones(5))
        np.log(x, where=x > 0, out=np.zeros(5)) | np.divide(1, x, where=x > 0, out=np.zeros_like(x)) | np.sqrt(np.abs(x))
        np.add.reduce(x) | np.multiply.reduce(x) | np.maximum.reduce(x) | np.minimum.reduce(x) | np.subtract.reduce(x) | np.add.accumulate(x)
        np.multiply.accumulate(x) | np.maximum.accumulate(x) | np.subtract.accumulate(x) | np.add.outer(x, x) | np.multiply.outer(x, x)
        np.add.reduceat(x, [0, 2, 3]) | np.multiply.reduceat(x, [0, 3]) | np.logaddexp.reduce(x) | np.hypot.reduce(x) | np.maximum.outer(x, x + 0.1)
        np.subtract.outer(x, x) | np.add.reduce(x, initial=2.0) | np.add.reduce(x, keepdims=True) | np.divide.outer(x, np.arange(1.0, 3))
        np.frexp(x)[0] | np.ldexp(x, 3) | np.ldexp(x, np.arange(5)) | np.modf(x)[0] | np.modf(x)[1] + x | np.divmod(x, 0.7)[1] | np.divmod(1.37, x)[1]
        np.isnan(x) + x | np.isfinite(x) * x | np.signbit(x) * x | np.logical_and(x > 0, x < 1) * x | np.equal(x, x[0]) * x
        np.clip(x, -0.5, 1.0) | np.clip(x, None, 1.0) | np.clip(x, x - 1, 0.5) | np.clip(x, a_min=0.0, a_max=None) | np.clip(0.1, x, x + 1)
        np.nan_to_num(x / (x > 0)) if False else np.nan_to_num(x) | np.round(x, 1) + x | np.around(x) + x | np.real_if_close(x + 0j)
        np.interp(x, [-2.0, 0.0, 1.1, 3.0], [0.0, 1.0, 5.0, 2.0]) | np.interp(0.5, np.sort(x), np.arange(5.0)) | np.interp([0.2, 1.5], [0, 1, 2, 3, 4], x)
        np.interp(x, [0.0, 1.0], [2.0, 5.0], left=-1.0, right=9.0) | np.interp(x, [0.0, 0.4, 0.9], [1.0, 2.0, 4.0], period=1.0) | np.interp(9.0, [0, 1, 2, 3, 4], x)
        np.convolve(x, [1.0, 2.0]) | np.convolve(x, [1.0, 2.0], "same") | np.convolve([1.0, 2.0, 0.5], x, "valid") | np.convolve(x, x) | np.correlate(x, x, "full")
        np.correlate(x, [1.0, 2.0]) | np.correlate([1.0, 2.0], x, "same") | np.diff(x) | np.diff(x, 2) | np.diff(x, prepend=0.0) | np.diff(x, append=[1.0, 2.0])
        np.ediff1d(x) | np.ediff1d(x, to_begin=1.0, to_end=[2.0, 3.0]) | np.gradient(x) | np.gradient(x, 0.5) | np.gradient(x, np.array([0.0, 1, 3, 4, 6]))
        np.gradient(x, edge_order=2) | np.gradient(np.arange(5.0) ** 2, np.cumsum(np.exp(x))) | np.trapezoid(x) | np.trapezoid(x, dx=0.5) | np.trapezoid(np.arange(5.0), x)
        np.trapezoid(x, [0, 1, 3, 4, 6]) | np.cumsum(x) | np.cumprod(x) | np.nancumsum(x) | np.nancumprod(x) | np.cumulative_sum(x) | np.cumulative_prod(x)
        np.cumulative_sum(x, include_initial=True) | np.cumulative_prod(x, include_initial=True) | np.unwrap(x * 4) | np.sort(x) | np.sort(x)[::-1]
        np.argsort(x) * x | np.partition(x, 2) | np.partition(x, [1, 3]) | np.argpartition(x, 2)[2] * x | np.sort_complex(x) | np.unique(x) | np.unique(x, return_inverse=True)[0]
        np.unique_values(x) | np.union1d(x, [0.0, 1.0]) | np.setdiff1d(x, [1.0]) | np.intersect1d(x, x[::-1]) | np.setxor1d(x, [1.0, 2.0]) | np.trim_zeros(np.array([0.0, *x, 0.0]))
        np.median(x) | np.percentile(x, 37) | np.percentile(x, [10, 50]) | np.quantile(x, 0.37) | np.quantile(x, [0.2, 0.9], axis=0) | np.nanpercentile(x, 37) | np.nanquantile(x, 0.2)
        np.quantile(x, 0.37, method="hazen") | np.quantile(x, 0.37, method="median_unbiased") | np.quantile(x, 0.37, method="lower") | np.quantile(x, 0.37, method="higher")
        np.quantile(x, 0.37, method="midpoint") | np.quantile(x, 0.37, method="nearest") | np.quantile(x, 0.37, method="weibull") | np.percentile(x, 40, method="inverted_cdf")
        np.quantile(x, 0.4, weights=np.arange(1.0, 6), method="inverted_cdf") | np.average(x, weights=[1, 2, 3, 4, 5]) | np.average([1.0, 2, 3, 4, 5], weights=np.exp(x)) | np.average(x, weights=np.exp(x), returned=True)[1]
        np.std(x, ddof=1) | np.var(x, ddof=1) | np.std(x[:1]) + x[0] | np.std(x * 0 + 1) | np.var(x, mean=np.mean(x)) | np.var(x, correction=1) | np.cov(x) | np.cov(x, ddof=0) | np.corrcoef(x, x ** 2)
        np.cov(x, x ** 2) | np.cov(x, fweights=[1, 2, 1, 1, 3]) | np.cov(x, aweights=np.arange(1.0, 6)) | np.dot(x, x) | np.inner(x, x) | np.outer(x, x) | np.vdot(x, x) | np.vecdot(x, x)
        np.kron(x, [1.0, 2.0]) | np.cross(x[:3], x[2:]) | np.linalg.cross(x[:3], x[2:]) | np.tensordot(x, x, 0) | np.tensordot(x, x, 1) | np.einsum("i,i", x, x) | np.einsum("i,j->ij", x, x)
        np.einsum("i->", x) | np.einsum("i,i->i", x, x) | np.einsum(x, [0], x, [1], [1, 0]) | np.matmul(x, np.ones((5, 3))) | np.matvec(np.ones((2, 5)), x) | np.vecmat(x, np.ones((5, 2))) | np.linalg.outer(x, x) | np.linalg.vecdot(x, x)
        np.polyval([1.0, 2.0, 3.0], x) | np.polyval(x, 0.7) | np.polyval(x, x) | np.poly(x) | np.polyder(x) | np.polyint(x) | np.polyadd(x, [1.0, 2.0]) | np.polymul(x, [1.0, 2.0]) | np.polysub(x, [1.0]) | np.polydiv(x, [1.0, 2.0])[0]
        np.polyfit(np.arange(5.0), x, 2) | np.polyfit(np.cumsum(np.exp(x)), np.arange(5.0) ** 2, 1) | np.roots([1.0, x[0] - 4, x[1] + 1]) | np.vander(x) | np.vander(x, 3, increasing=True)
        np.polynomial.polynomial.polyval(x, [1.0, 2.0, 3.0]) | np.polynomial.polynomial.polyval(0.3, x) | np.polynomial.chebyshev.chebval(x, [1.0, 2.0, 3.0]) | np.polynomial.legendre.legval(x, [1.0, 2.0]) | np.polynomial.hermite.hermval(0.4, x)
        np.append(x, 3.0) | np.append(x, x) | np.insert(x, 1, 9.0) | np.insert(x, [1, 3], [8.0, 9.0]) | np.insert(np.arange(3.0), 1, x) | np.delete(x, 1) | np.delete(x, [0, 2]) | np.resize(x, (2, 4)) | np.tile(x, 2) | np.tile(x, (2, 1)) | np.repeat(x, 2) | np.repeat(x, [1, 0, 2, 1, 1])
        np.roll(x, 2) | np.roll(x, -1) | np.flip(x) | np.take(x, [0, -1]) | np.take(x, [7], mode="wrap") | np.take(x, [9], mode="clip") | np.take_along_axis(x, np.array([1, 0]), 0) | np.compress([1, 0, 1], x) | np.extract(x > 0, x) | np.choose([0, 1, 0, 1, 0], [x, x ** 2]) | np.select([x > 1, x > 0], [x, x ** 2], -x)
        np.piecewise(x, [x < 0, x >= 0], [lambda t: -t ** 2, lambda t: t ** 3]) | np.piecewise(x, [x < 0], [1.0, np.sin]) | np.where(x > 0, np.log(np.abs(x)), 0.0) | np.argwhere(x > 0).sum() * x | np.flatnonzero(x > 0).sum() * x | np.count_nonzero(x > 0) * x
        np.searchsorted(np.sort(x), 0.0) * x | np.digitize(x, [0.0, 1.0]) * x | np.bincount([0, 1, 1, 0, 2], weights=x) | np.bincount([0, 1, 1]) [1] * x | np.apply_along_axis(np.sum, 0, x) | np.apply_along_axis(lambda r: r ** 2, 0, x) | np.vectorize(lambda t: t ** 2 if t > 0 else -t)(x) | np.frompyfunc(lambda t: t * 2, 1, 1)(x).sum()
        np.concatenate([x, x ** 2]) | np.concatenate((x, [1.0])) | np.concat([x, x]) | np.stack([x, x], 1) | np.vstack([x, x]) | np.hstack([x, 1.0]) | np.dstack([x, x]) | np.column_stack([x, x]) | np.block([x, x]) | np.block([[x], [x]]) | np.r_[x, 1.0] | np.c_[x, x]
        np.split(x, [2])[1] | np.array_split(x, 2)[0] | np.hsplit(x, [1])[1] | np.expand_dims(x, 0) | np.squeeze(x[None]) | np.atleast_1d(x) | np.atleast_2d(x) | np.atleast_3d(x) | np.broadcast_to(x, (2, 5)) | np.broadcast_arrays(x, np.ones((2, 1)))[0] | np.meshgrid(x, x[:2])[1] | np.meshgrid(x, x[:2], indexing="ij")[0]
        np.ix_([0, 1], [0])[0].sum() * x | np.diag(x) | np.diag(x, 1) | np.diagflat(x) | np.tri(5) @ x | np.pad(x, 2) | np.pad(x, (1, 2), mode="edge") | np.pad(x, 2, mode="reflect") | np.pad(x, 2, mode="symmetric") | np.pad(x, 2, mode="wrap") | np.pad(x, 1, constant_values=3.0) | np.pad(x, 2, mode="mean") | np.pad(x, 2, mode="linear_ramp", end_values=1.0) | np.pad(x, 2, mode="maximum")
        np.fft.fft(x) | np.fft.ifft(x) | np.fft.rfft(x) | np.fft.irfft(x) | np.fft.hfft(x) | np.fft.ihfft(x) | np.fft.fft(x, 8) | np.fft.fft(x, norm="ortho") | np.fft.irfft(x, 7) | np.fft.fftshift(x) | np.fft.ifftshift(x) | np.fft.fftn(x) | np.fft.rfftn(x) | np.fft.fft(x, 3) | np.fft.irfft(x + 1j * x, norm="forward")
        np.linalg.norm(x) | np.linalg.norm(x, 1) | np.linalg.norm(x, 3) | np.linalg.norm(x, np.inf) | np.linalg.norm(x, -np.inf) | np.linalg.norm(x, 2.5) | np.linalg.vector_norm(x) | np.linalg.vector_norm(x, ord=3) | np.linalg.norm(x - x) + x[0] | np.sqrt(np.sum((x - x) ** 2)) + x[0]
        np.array(x) | np.asarray(x) | np.array([x, x]) | np.array([[x[0], 1.0], [x[1], x[2]]]) | np.asarray([x[0], 2]) | np.copy(x) | np.ascontiguousarray(x) | np.asanyarray(x) | np.array(x, ndmin=2) | np.array(x, dtype=float, copy=True) | np.full(3, x[0]) | np.full((2, 2), x[1]) | np.full_like(x, x[0]) | np.ones_like(x) * x | np.zeros_like(x) + x | np.empty_like(x) * 0 + x | np.require(x)
        np.real(x) | np.imag(x + 1j * x ** 2) | np.angle(x + 1j) | np.iscomplexobj(x) + x | np.isscalar(x[0]) * x | np.shape(x)[0] * x | np.ndim(x) + x | np.size(x) * x | np.astype(x, complex) | np.allclose(x, x) * x | np.array_equal(x, x) * x | np.isclose(x, 0.5) * x | np.may_share_memory(x, x[1:]) * x | np.result_type(x, 1.0).itemsize * x
        np.lib.stride_tricks.sliding_window_view(x, 3) | np.permute_dims(x) | np.unstack(x)[0] | np.linspace(x[0], x[1], 4) | np.linspace(0, x[3], 3) | np.logspace(x[0], x[2], 3) | np.geomspace(np.exp(x[0]), 9.0, 4) | np.arange(3) * x[0] | np.hanning(5) * x | np.blackman(5) * x | np.indices((5,))[0] * x | np.mgrid[0:5] * x | np.ogrid[0:5] * x | np.fromfunction(lambda i: x * i, (5,)) | np.eye(5) @ x | np.identity(5) @ x
        np.apply_over_axes(np.sum, x, 0) | np.lexsort((x,)) * x | np.isin(x, [0.5]) * x | np.nanargmax(x) * x | np.ravel(x, order="F") | np.rot90(x[None]) | np.transpose(x) | np.moveaxis(x[None], 0, 1) | np.rollaxis(x[None], 1) | np.swapaxes(x[None], 0, 1) | np.nan_to_num(x, nan=1.0) | np.empty(5) * 0 + x | np.unique_counts(x).values | np.unique_all(x)[0] | np.unique_inverse(x).values
        np.sum(x, where=x > 0) | np.sum(x, initial=3.0) | np.max(x, initial=0.5, where=x < 1) | np.prod(x, where=x > 0) | np.mean(x, where=x > 0) | np.mean([x[0], x[1], 2.0]) | np.max([x[0], x[1]]) | np.add([x[0], x[1]], 1.0) | np.sum(list(x)) | np.stack(list(x)) | np.var([x[0], 1.0, 2.0]) | np.dot([1.0, 2.0], [x[0], x[1]]) | np.sin([x[0], x[1]]) | np.maximum(x[0], [x[1], 0.5])
        math.sin(x[0]) * x[1] | math.exp(x[0]) | math.sqrt(x[2]) | math.pow(x[2], 2) | math.log(x[2]) | math.log(x[2], 10) | math.atan2(x[0], x[1]) | math.hypot(x[0], x[1]) | math.fabs(x[1]) | math.floor(x[3]) * x[0] | math.erf(x[0]) | math.gamma(x[2]) | math.lgamma(x[2]) | math.tanh(x[0]) | math.copysign(x[0], -1) | math.degrees(x[0]) | math.fsum([x[0], x[1]]) | math.prod([x[0], x[1]]) | math.dist(x[:2], x[2:4]) | math.cbrt(x[0]) | math.expm1(x[0]) | math.erfc(x[0]) | math.fmod(x[3], 0.7) | math.isfinite(x[0]) * x[0] | math.trunc(x[3]) * x[0] | math.ldexp(x[0], 2)
        np.all(x) * x | np.any(x > 1) * x | np.argmin(x) * x | np.nanargmin(x) * x | np.array_equiv(x, x) * x | len(np.array_repr(x > 0)) * x | len(np.array_str(x > 0)) * x | len(np.array2string(x > 0)) * x | np.asarray_chkfinite(x) * 2 | np.asfortranarray(x) * 2 | np.bartlett(5) * x | np.hamming(5) * x | np.broadcast_shapes(x.shape, (2, 1))[0] * x | np.can_cast(x.dtype, complex) * x | np.common_type(x, x).__name__.__len__() * x | np.isrealobj(x) * x | np.isfortran(x[None]) * x | np.min_scalar_type(x[0]).itemsize * x
        np.einsum_path("i,i", x, x)[0][0] and x * 2 | len(np.format_float_positional(np.floor(x[3]))) * x | len(np.format_float_scientific(np.floor(x[3]), precision=2)) * x | np.iscomplex(x) + x | np.isinf(x) + x | np.isneginf(x) + x | np.isposinf(x) + x | np.isreal(x) * x | np.iterable(x) * x | np.logical_not(x) + x | np.logical_or(x > 0, x < 1) * x | np.logical_xor(x > 0, x < 1) * x | (~(x > 0)) * x | ((x > 0) & (x < 1)) * x | np.bitwise_or(x > 0, x < -1) * x | ((x > 0) ^ (x < 1)) * x | np.invert(x > 0) * x | np.bitwise_and(x > 0, x < 2) * x
        np.not_equal(x, 0.5) * x | np.greater(x, 0) * x | np.greater_equal(x, 0) * x | np.less(x, 0) * x | np.less_equal(x, 0) * x | np.nonzero(x > 0)[0].sum() * x | np.promote_types(x.dtype, complex).itemsize * x | np.ravel_multi_index(([1], [2]), (3, 4)) * x | np.unravel_index(3, (2, 4))[1] * x | np.reshape(x, (5, 1)) | np.reshape(x, -1) | np.shares_memory(x, x[1:]) * x | np.tril_indices(2)[0].sum() * x | np.triu_indices(2)[1].sum() * x | np.mask_indices(2, np.triu)[0].sum() * x | np.diag_indices(3)[0].sum() * x | np.fft.fftfreq(5) * x | np.fft.rfftfreq(9) * x | np.gcd(4, 6) * x | np.isdtype(x.dtype, "real floating") * x | np.issubdtype(x.dtype, np.floating) * x
        np.pow(np.abs(x), 1.5) | np.asinh(x) | np.atan(x) | np.histogram([1.0, 2.0, 2.5], 2)[0].sum() * x | np.cumsum(x, out=np.zeros(5)) | np.sum(x, out=np.zeros(())) | np.mean(x, out=np.zeros(1)[0:1].reshape(())) | np.dot(np.ones((2, 5)), x, out=np.zeros(2)) | np.concatenate([x, x], out=np.zeros(10)) | np.take(x, [1, 2], out=np.zeros(2)) | np.clip(x, 0, 1, out=np.zeros(5)) | np.exp(x, out=np.zeros(5)) | np.maximum(x, 0.5, out=np.zeros(5)) | np.sin(x, np.zeros(5)) | np.cumsum(x, dtype=complex) | np.sum(x, dtype=complex) | np.matmul(np.ones((2, 5)), x, out=np.zeros(2)) | np.round(x, 1, out=np.zeros(5)) + x | np.std(x, out=np.zeros(())) | np.add.accumulate(x, out=np.zeros(5)) | np.add.reduce(x, out=np.zeros(())) | np.einsum("i,j->ij", x, x, out=np.zeros((5, 5)))
        done(np.copyto, np.zeros(5), x) | done(np.copyto, np.ones(5), x, where=[1, 0, 1, 0, 1]) | done(np.put, np.zeros(5), [0, 3], x[:2]) | done(np.put, np.zeros(5), [7], x[0], mode="wrap") | done(np.place, np.zeros(5), [1, 0, 1, 1, 0], x) | done(np.putmask, np.zeros(5), [1, 0, 1, 1, 0], x) | done(np.putmask, np.zeros(5), [1, 0, 1, 1, 0], x[:2]) | done(np.fill_diagonal, np.zeros((3, 3)), x[:3]) | done(np.fill_diagonal, np.zeros((7, 3)), x[0], wrap=True) | done(np.put_along_axis, np.zeros((2, 5)), np.array([[1], [2]]), x[:2][:, None], 1) | done(np.add.at, np.zeros(3), [0, 0, 1, 2, 1], x) | done(np.multiply.at, np.ones(3), [0, 0, 1], x[:3]) | done(np.maximum.at, np.zeros(3), [0, 0, 1], x[:3]) | done(np.negative.at, x * 1, [0, 0, 1]) | done(np.divide.at, x * 1, [1, 1], x[3])
    """.replace("\n", " | ").split(" | "),
    "p": [
        "np.sqrt(x)", "np.power(x, x)", "x ** x", "np.power(x, [0.5, 1.5, 2.5, -0.5, 0.0])", "np.emath.sqrt(x)", "np.emath.log(x)",
        "np.float_power(x, x)", "np.log(x) / np.log(2)", "np.geomspace(x[0], x[1], 4)", "np.sqrt(x, out=np.empty(5))", "np.kaiser(5, x[0])",
        "np.emath.power(x, 2)", "np.emath.logn(2, x)", "2 ** x", "np.float64(2) ** x", "np.float64(3) * x", "np.array(2.0) - x",
    ],
    "s": [
        "x * 2", "np.sin(x)", "x[()] ** 2", "x[...] * 2", "x.item() * 2", "np.sum(x)", "x.reshape(1)", "np.array([x, 2 * x])", "np.atleast_1d(x)", "x.copy()",
        "math.sin(x)", "np.linspace(0, x, 3)", "np.where(x > 0, x, -x)", "np.max(x)", "np.stack([x, x])", "np.full((2,), x)", "np.outer(x, x)", "np.dot(x, x)",
        "x + np.arange(3)", "np.broadcast_to(x, (3,))", "x.T", "np.expand_dims(x, 0)", "np.multiply(x, [1, 2])", "x.ravel()", "np.mean(x)", "np.clip(x, 0, 0.5)",
    ],
    "o": ["np.std(x)", "np.var(x)", "np.std(x) + x", "x[0] ** 2", "x.item() ** 2", "np.linalg.norm(x)", "np.median(x)", "np.squeeze(x)", "np.mean(x)", "np.cumsum(x)", "np.sort(x)"],
    "A": """
                x.T | x.T @ x | x @ x.T | x[0] | x[:, 1] | x[1:, ::2] | x[..., 0] | x[[0, 2], [1, 3]] | x[[0, 2]][:, [1, 3]] | x[np.ix_([0, 2], [1, 3])] | x[x > 0] | x[:, x[0] > 0] | x[0, 1] | x[-1, -1] | x[:, None, :] | x[[[0], [1]], [[1, 2]]] | x[:, [1, 1, 0]] | x[1, [0, 2]] | x[np.array([True, False, True])]
        x.reshape(2, 6) | x.reshape(-1) | x.reshape((4, 3), order="F") | x.ravel("F") | x.flatten("F") | x.transpose() | x.transpose(1, 0) | x.transpose((1, 0)) | x.sum(0) | x.mean(axis=1) | x.max(1) | x.min(0) | x.std(0, ddof=1) | x.var(axis=1) | x.prod(1) | x.cumsum(1) | x.cumsum() | x.cumprod(0) | x.argmax(1) * x[0, 0] | x.diagonal() | x.trace() | x.trace(1) | x.repeat(2, axis=1) | x.take([1], axis=1) | x.mT | x.swapaxes(0, 1) | x.dot(x.T) | x.clip(0.0) | x.flat[5] * x | x.all() * x | x.compress([1, 0, 1], axis=0)
        np.trace(x) | np.trace(x, 1) | np.diagonal(x) | np.diagonal(x, 1) | np.diag(x) | np.diag(x, -1) | np.tril(x) | np.triu(x, 1) | np.tril(x, -1) | np.rot90(x) | np.rot90(x, 2) | np.flip(x) | np.flip(x, 1) | np.flipud(x) | np.fliplr(x) | np.roll(x, 1) | np.roll(x, 1, axis=1) | np.roll(x, (1, 2), axis=(0, 1)) | np.transpose(x) | np.moveaxis(x, 0, 1) | np.rollaxis(x, 1) | np.swapaxes(x, 0, 1) | np.permute_dims(x, (1, 0)) | np.matrix_transpose(x) | np.squeeze(x[None]) | np.expand_dims(x, (0, 2))
        np.sort(x, 0) | np.sort(x, axis=None) | np.sort(x) | np.partition(x, 1, axis=0) | np.take_along_axis(x, np.argsort(x, 1), 1) | np.diff(x, axis=0) | np.diff(x, 2) | np.gradient(x)[0] | np.gradient(x, axis=1) | np.gradient(x, 0.5, 2.0)[1] | np.trapezoid(x, axis=0) | np.cumsum(x) | np.cumsum(x, 0) | np.cumprod(x, 1) | np.cumulative_sum(x, axis=1) | np.cov(x) | np.cov(x, rowvar=False) | np.corrcoef(x) | np.median(x) | np.median(x, 0) | np.median(x, axis=1, keepdims=True) | np.percentile(x, 30, axis=1) | np.quantile(x, [0.2, 0.7], axis=0) | np.quantile(x, 0.3, axis=(0, 1)) | np.nanmedian(x, 0) | np.ptp(x, 0) | np.average(x, axis=0, weights=[1.0, 2.0, 3.0]) | np.average(x, 1) | np.unwrap(x * 3) | np.sum(x, axis=(0, 1), keepdims=True)
        np.dot(x, x.T) | np.dot(x, np.ones(4)) | np.inner(x, x) | np.outer(x[0], x[1]) | np.vdot(x, x) | np.tensordot(x, x, 2) | np.tensordot(x, x, axes=([0], [0])) | np.tensordot(x, x, axes=(1, 1)) | np.einsum("ij->ji", x) | np.einsum("ij,kj->ik", x, x) | np.einsum("ij,ij", x, x) | np.einsum("ij->", x) | np.einsum("ij->i", x) | np.einsum("...j->...", x) | np.einsum("ij,jk,kl->il", x, x.T, x, optimize=True) | np.einsum("ij,j", x, x[0]) | np.kron(x, np.eye(2)) | np.kron(x[:2, :2], x[1:, 2:]) | np.matmul(x, x.T) | np.matvec(x, x[0]) | np.vecmat(x[:, 0], x) | np.vecdot(x, x) | np.cross(x[:, :3], x[:, 1:]) | np.linalg.multi_dot([x, x.T, x]) | np.linalg.matmul(x, x.T) | np.linalg.trace(x) | np.linalg.diagonal(x) | np.linalg.matrix_transpose(x) | np.linalg.tensordot(x, x) | np.linalg.outer(x[0], x[1])
        np.linalg.norm(x) | np.linalg.norm(x, "nuc") | np.linalg.norm(x, 2) | np.linalg.norm(x, 1) | np.linalg.norm(x, np.inf) | np.linalg.norm(x, axis=0) | np.linalg.norm(x, axis=1, keepdims=True) | np.linalg.norm(x, -2) | np.linalg.norm(x, 3, axis=0) | np.linalg.matrix_norm(x) | np.linalg.vector_norm(x, axis=1) | np.linalg.svd(x, compute_uv=False) | np.linalg.svdvals(x) | np.linalg.svd(x, full_matrices=False)[0] | np.linalg.svd(x, full_matrices=False)[2] | np.linalg.svd(x, full_matrices=False).S | np.linalg.pinv(x) | np.linalg.qr(x.T)[0] | np.linalg.qr(x.T)[1] | np.linalg.qr(x.T, mode="r") | np.linalg.qr(x)[1] | np.linalg.lstsq(x.T, np.arange(4.0))[0] | np.linalg.lstsq(np.vander(np.arange(4.0), 3), x.T)[0] | np.linalg.lstsq(x.T, np.arange(4.0))[1] | np.linalg.matrix_rank(x) * x | np.linalg.cond(x)
        np.concatenate([x, x], 1) | np.concatenate([x, x], axis=None) | np.stack([x, x], -1) | np.vstack([x, x[0]]) | np.hstack([x, x]) | np.dstack([x, x]) | np.column_stack([x, x[:, 0]]) | np.block([[x, x], [x, x]]) | np.split(x, 2, axis=1)[1] | np.vsplit(x, 3)[1] | np.hsplit(x, 2)[0] | np.array_split(x, 2, axis=0)[0] | np.unstack(x, axis=1)[0] | np.append(x, x, 0) | np.append(x, 1.0) | np.insert(x, 1, 9.0, axis=1) | np.insert(x, 1, x[:, 0], axis=1) | np.insert(x, [0, 2], 5.0, axis=0) | np.delete(x, 1, 0) | np.delete(x, [0, 3], axis=1) | np.tile(x, (2, 2)) | np.repeat(x, 2, 0) | np.repeat(x, 2) | np.resize(x, (5, 3)) | np.pad(x, 1) | np.pad(x, ((1, 0), (0, 2)), mode="edge") | np.take(x, [0, 5]) | np.take(x, [0, 2], axis=1) | np.compress([1, 0, 1], x, axis=0) | np.extract(x > 0, x) | np.choose([0, 1, 0, 1], x[:2]) | np.lib.stride_tricks.sliding_window_view(x, (2, 2)) | np.broadcast_to(x, (2, 3, 4)) | np.atleast_3d(x)
        np.apply_along_axis(np.sum, 0, x) | np.apply_along_axis(lambda r: r[0] * r, 1, x) | np.apply_over_axes(np.sum, x, [0, 1]) | np.vectorize(lambda a, b: a * b)(x, x[0]) | np.vectorize(np.dot, signature="(n),(n)->()")(x, x[0]) | np.fft.fft(x) | np.fft.fft(x, axis=0) | np.fft.fft2(x) | np.fft.ifft2(x) | np.fft.rfft2(x) | np.fft.irfft2(x) | np.fft.fftn(x) | np.fft.ifftn(x) | np.fft.rfftn(x) | np.fft.irfftn(x) | np.fft.fft2(x, s=(4, 4)) | np.fft.fftshift(x, 1) | np.fft.rfft(x, axis=0) | np.fft.hfft(x, axis=0) | np.nan_to_num(x) | np.where(x > 0, x, x.mean()) | np.clip(x, x.mean(0), None) | np.maximum(x, x.mean(1, keepdims=True)) | np.add.reduce(x) | np.add.reduce(x, axis=1) | np.add.reduce(x, axis=(0, 1)) | np.add.reduce(x, axis=None) | np.multiply.reduce(x, 1) | np.logaddexp.reduce(x, axis=1) | np.maximum.accumulate(x, axis=1) | np.add.reduceat(x, [0, 2], axis=1) | np.array([r.sum() for r in x]) | [r * 2 for r in x] | (x[0], {"a": x[1]})
        sum(x) | np.array([list(r) for r in x]) | np.meshgrid(x[0], x[1])[0] | np.unique(x) | np.unique(x, axis=0) | np.nansum(np.where(x > 0, x, np.nan), axis=0) | np.nanmean(np.where(x > 0, x, np.nan)) | np.nanstd(np.where(x > -1, x, np.nan), axis=1) | np.nanmax(np.where(x > 0, x, np.nan), axis=0) | np.linalg.norm(x[:, None] - x[None], axis=-1) | np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True) | np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
    """.replace("\n", " | ").split(" | "),
    "S": """
        np.linalg.inv(x) | np.linalg.det(x) | np.linalg.slogdet(x)[1] | np.linalg.slogdet(x).logabsdet | np.linalg.solve(x, np.arange(3.0)) | np.linalg.solve(x, np.eye(3)) | np.linalg.solve(np.eye(3) * 2 + 0.1, x) | np.linalg.eigvals(x) | np.linalg.eigvalsh(x) | np.linalg.eigvalsh(x, UPLO="U") | np.linalg.eigh(x)[0] | np.linalg.eigh(x)[1] | np.linalg.eigh(x, "U")[1] | np.linalg.cholesky(x @ x.T) | np.linalg.cholesky(x @ x.T + np.tril(x)) | np.linalg.cholesky(x + 3 * np.eye(3), upper=True) | np.linalg.matrix_power(x, 3) | np.linalg.matrix_power(x, -2) | np.linalg.matrix_power(x, 0) + x | np.linalg.svd(x)[0] | np.linalg.svd(x)[2] | np.linalg.svd(x)[1] | np.linalg.svd(x + x.T, hermitian=True)[1]
        np.linalg.qr(x).Q | np.linalg.qr(x).R | np.linalg.pinv(x) | np.linalg.pinv(x, hermitian=True) | np.linalg.pinv(x, rcond=1e-10) | np.linalg.cond(x) | np.linalg.cond(x, 1) | np.linalg.norm(x, "fro") | np.linalg.lstsq(x, np.arange(3.0))[0] | np.linalg.tensorinv(x.reshape(3, 3), 1) | np.linalg.tensorsolve(x, np.arange(3.0)) | np.linalg.multi_dot([x, x, x]) | np.linalg.matrix_rank(x) * x | np.einsum("ii", x) | np.einsum("ii->i", x) | np.einsum("ij,jk->ik", x, x) | x @ x | np.linalg.slogdet(-x)[1] | np.linalg.inv(x.T) @ x[0] | np.linalg.solve(x, x[0]) | np.linalg.eig(x)[0] | np.linalg.det(x[:2, :2])
    """.replace("\n", " | ").split(" | "),
    "B": """
        np.linalg.inv(x) | np.linalg.det(x) | np.linalg.solve(x, np.ones((3, 2, 1))) | np.linalg.slogdet(x)[1] | np.linalg.eigvalsh(x) | np.linalg.cholesky(x @ np.swapaxes(x, 1, 2)) | np.matmul(x, x) | x @ x[0] | x[0] @ x | np.matmul(x, np.ones(2)) | np.linalg.matrix_power(x, 2) | np.linalg.svd(x, compute_uv=False) | np.linalg.qr(x)[1] | np.linalg.norm(x, axis=(1, 2)) | np.trace(x, axis1=1, axis2=2) | np.einsum("bij,bjk->bik", x, x) | np.einsum("...ij,...ij->...", x, x) | np.dot(x, np.ones(2)) | np.dot(x, x[0]) | np.dot(x[0], x) | np.dot(x, x) | np.inner(x, x[0]) | np.tensordot(x, x, axes=([1, 2], [1, 2])) | np.linalg.pinv(x) | np.vecdot(x, x) | np.matvec(x, np.ones(2)) | x.mT @ x | np.linalg.eigh(x)[0] | np.linalg.matrix_norm(x)
    """.replace("\n", " | ").split(" | "),
    "C": """
        x.sum((0, 2)) | x.transpose(2, 0, 1) | np.transpose(x, (1, 2, 0)) | x[:, 0] | x[0, :, 1] | x[..., 1:3] | x[:, [0, 2]] | x[[0, 1], :, [1, 2]] | x[:, [0, 1], [1, 2]] | x[[0], [1]] | x[..., None, :] | x.reshape(6, 4) | x.reshape(2, -1) | np.moveaxis(x, 0, -1) | np.moveaxis(x, [0, 1], [1, 0]) | np.rollaxis(x, 2) | np.swapaxes(x, 0, 2) | np.max(x, axis=(0, 2)) | np.mean(x, 1) | np.std(x, axis=(0, 1)) | np.median(x, axis=(1, 2)) | np.cumsum(x, 1) | np.diff(x, axis=1) | np.concatenate([x, x], 1) | np.stack([x, x], 1) | np.fft.fftn(x) | np.fft.fft2(x) | np.fft.rfftn(x, axes=(0, 2)) | np.einsum("ijk->kij", x) | np.einsum("ijk,k->ij", x, x[0, 0]) | np.tensordot(x, x, axes=([0, 1], [0, 1])) | np.flip(x, (0, 2)) | np.rot90(x, 1, (1, 2)) | np.tile(x, (1, 2, 1)) | np.pad(x, 1, mode="edge") | np.squeeze(x[:, :1]) | x.T | x.mT | x.swapaxes(1, 2).reshape(-1) | np.argmax(x, 1) * x[:, 0] | np.sort(x, 1) | np.dsplit(x, 2)[0] | np.take(x, [0, 2], 1) | np.expand_dims(x, 1) | x.prod(axis=2) | np.linalg.norm(x, axis=2) | np.quantile(x, 0.4, axis=(0, 2)) | x[x > 0] * 2 | x[:, x[0, :, 0] > -9] | np.apply_along_axis(np.cumsum, 1, x) | np.average(x, axis=1, weights=[1.0, 2.0, 3.0]) | np.diagonal(x, axis1=1, axis2=2) | np.trace(x, 0, 1, 2) | np.ravel(x, "F") | np.delete(x, 1, 1) | np.insert(x, 1, 0.0, 2) | np.unstack(x)[1] | np.broadcast_to(x[:, :1], (2, 3, 4)) | np.cov(x[0])
    """.replace("\n", " | ").split(" | "),
    "z": """
        x * 1j | x * x.conj() | x.real | x.imag | x.real + x.imag | np.abs(x) | abs(x) ** 2 | x ** 2 | x ** 0.5 | x ** x | 2.0 ** x | x / (1 + x) | np.sum(x) | np.prod(x) | np.vdot(x, x) | np.dot(x, x) | np.outer(x, x) | np.exp(1j * x) | np.fft.fft(x) | np.fft.ifft(x) | np.fft.irfft(x) | np.fft.hfft(x) | np.linalg.norm(x) | np.cumsum(x) | np.cumprod(x) | np.mean(x) | np.var(x) | np.std(x) | np.sort_complex(x) | np.real_if_close(x) | np.angle(x, deg=True) | np.where(x.real > 0, x, 0) | np.convolve(x, x) | np.correlate(x, [1j, 2.0]) | np.einsum("i,i", x, x.conj()) | np.polyval([1.0, 2.0], x) | np.interp([0.5], [0, 1, 2], x) | np.diff(x) | np.isreal(x) * x | np.concatenate([x, x.real]) | np.real(x) * x | x.astype(complex) | np.sinc(x) | x.T | x[1] | np.tensordot(x, x, 0) | np.kron(x, x) | np.vecdot(x, x) | np.linalg.vecdot(x, x) | np.cov(x) | np.trapezoid(x) | np.square(x) | np.nan_to_num(x) | np.true_divide(x, 2) | np.linspace(x[0], x[1], 3) | np.roll(x, 1) | np.average(x, weights=[1, 2, 3]) | np.array([x[0].real, x[1].imag]) | np.sqrt(x.real ** 2 + x.imag ** 2)
    """.replace("\n", " | ").split(" | "),
    "Z": """
        np.linalg.inv(x) | np.linalg.det(x) | np.linalg.solve(x, np.ones(2)) | np.linalg.slogdet(x)[1] | np.linalg.slogdet(x)[0] | x @ x | x.conj().T @ x | np.linalg.eigvalsh(x) | np.linalg.eigvalsh(x, "U") | np.linalg.eigvals(x) | np.linalg.cholesky(x @ x.conj().T) | np.linalg.svd(x, compute_uv=False) | np.linalg.norm(x) | np.linalg.norm(x, 2) | np.linalg.norm(x, "nuc") | np.linalg.matrix_power(x, 2) | np.linalg.pinv(x) | np.trace(x) | np.linalg.qr(x)[1] | np.einsum("ij,kj->ik", x, x.conj()) | np.fft.fft2(x) | x.real @ x.imag | np.inner(x, x) | np.vdot(x, x)
    """.replace("\n", " | ").split(" | "),
}  # fmt: skip


def done(write: Callable[..., Any], array: Any, *args: Any, **kwargs: Any) -> Any:
    """The array that ``write`` has written into."""
    write(array, *args, **kwargs)
    return array


SCOPE: dict[str, Any] = {"np": np, "math": __import__("math"), "done": done}


@dataclass(frozen=True)
class Case:
    """One function of one array, at one point."""

    text: str
    point: str

    @property
    def function(self) -> Callable[[Any], Any]:
        function: Callable[[Any], Any] = eval(f"lambda x: {self.text}", dict(SCOPE, __name__="users_code"))
        return function

    @property
    def x(self) -> Point:
        return POINTS[self.point].copy()

    def __str__(self) -> str:
        return f"{self.point}: {self.text}"


def _cases() -> list[Case]:
    cases = [
        Case(f"np.{name}(x)", point) for point, names in _UNARY.items() for name in names.split() if hasattr(np, name)
    ]
    for name in _BINARY.split():
        cases += [
            Case(f"np.{name}({args})", "p") for args in ("x, 0.7", "1.37, x", "x, x[::-1] + 0.05", "x, np.arange(1, 6)")
        ]
        cases += [Case(f"np.{name}(x, x[0] + 0.03)", "A")]
    cases += [
        Case(f"np.{name}({args})", "z")
        for name in ("add", "subtract", "multiply", "divide")
        for args in ("x, 2j", "1.5, x", "x, x[::-1]")
    ]
    for name in _REDUCING.split():
        cases += [Case(f"np.{name}(x{axis})", "A") for axis in _AXES]
        cases += [Case(f"np.{name}(x)", "v")]
    cases += [Case(f"np.{name}(x, axis=1, where=np.array([True, False, True, True]))", "A") for name in _WHERE.split()]
    cases += [Case(text.strip(), point) for point, texts in EXPRESSIONS.items() for text in texts if text.strip()]
    return list(dict.fromkeys(cases))


CASES = _cases()
