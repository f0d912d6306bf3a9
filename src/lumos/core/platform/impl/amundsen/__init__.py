"""Amundsen, by the relational tables that its metadata service reads."""
