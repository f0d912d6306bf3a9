"""Scans of sources: what is there, and what of it a run could see."""
