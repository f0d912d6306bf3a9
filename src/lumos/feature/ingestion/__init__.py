"""Reads metadata from sources: handlers say what to scan and yield canonical records."""
