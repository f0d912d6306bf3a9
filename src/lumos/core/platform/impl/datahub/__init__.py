"""DataHub, spoken to through its OpenAPI v3."""
