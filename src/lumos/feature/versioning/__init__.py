"""Versions of datasets, made from what changed."""
