"""The only place that puts parts together: requests in, results out."""

from lumos.bootstrap.dispatcher import Dispatcher

__all__ = ["Dispatcher"]
