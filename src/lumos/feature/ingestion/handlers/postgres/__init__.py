"""A PostgreSQL database as a source: its tables and views, read from the system catalog."""
