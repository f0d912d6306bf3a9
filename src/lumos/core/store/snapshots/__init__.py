"""Stored snapshots: files, parts, manifests, signatures."""
