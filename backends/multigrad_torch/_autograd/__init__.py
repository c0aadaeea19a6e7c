"""Torch's engine, forward mode and vmap: how they are run, and what goes wrong in them."""
