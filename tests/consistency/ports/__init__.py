"""Ports of the kind that people write, each right, and with the mistakes that are made in it."""

from __future__ import annotations

from tests.consistency.ports import attention, layers, losses, probability, signals, training
from tests.consistency.ports.port import Port

MODULES = (attention, layers, losses, probability, signals, training)
PORTS: tuple[Port, ...] = tuple(port for module in MODULES for port in module.PORTS)
