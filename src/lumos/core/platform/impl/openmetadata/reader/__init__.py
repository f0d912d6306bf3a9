"""Reads from OpenMetadata."""
