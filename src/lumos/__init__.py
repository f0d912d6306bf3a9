"""Lumos, the layer between data sources and a data catalog."""

__version__ = "0.1.0"
