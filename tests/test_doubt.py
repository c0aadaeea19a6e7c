"""Errors as small as the rounding of the precision that code is written for."""

SINGLE, HALF, BFLOAT = 2.0**-23, 2.0**-10, 2.0**-7
