"""Snapshots: export, load, validate, compare, and plan an import."""
