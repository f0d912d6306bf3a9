"""Requests: what a command is asked to do, as values that can be stored and sent.

Each module has the requests of one area. `registry.py` finds a request by the name of its
operation, without importing the others.
"""
