"""Bringing another catalog up to what Lumos knows."""
