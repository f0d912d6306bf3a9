"""Catalogs behind one interface."""
