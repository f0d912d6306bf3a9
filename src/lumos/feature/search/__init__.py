"""One search over several catalogs."""
