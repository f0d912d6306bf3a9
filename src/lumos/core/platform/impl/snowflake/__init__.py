"""Snowflake as a catalog: comments, tags and owning roles of its tables and views."""
