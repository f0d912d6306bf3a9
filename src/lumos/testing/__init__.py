"""Contracts for source handlers, platform adapters and exporters, shipped for all to use."""
