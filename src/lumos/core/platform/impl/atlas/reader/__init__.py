"""Reads from Atlas."""
