"""Snapshots as one JSON document."""
