"""OpenMetadata 1.11 and later as a catalog, by REST."""
