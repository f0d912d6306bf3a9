"""Moving all metadata from one catalog to another, with proof."""
