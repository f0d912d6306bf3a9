"""DataHub as a catalog, through its OpenAPI v3."""
