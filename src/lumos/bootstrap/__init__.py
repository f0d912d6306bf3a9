"""The only place that puts parts together: settings in, controllers out."""

from lumos.bootstrap.application import Application

__all__ = ["Application"]
