"""dbt projects, read from the artifacts that dbt writes to `target/`."""
