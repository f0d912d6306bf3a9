"""Migrations of the state database, by Alembic; found by path, never imported by name."""
