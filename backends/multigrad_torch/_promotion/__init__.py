"""Code for low precision, evaluated in float64: the function mode, and what it does with each call."""
