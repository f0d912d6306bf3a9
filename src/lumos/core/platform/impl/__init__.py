"""One adapter for each catalog."""
