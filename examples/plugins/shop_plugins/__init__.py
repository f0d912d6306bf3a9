"""A source and a catalog that Lumos does not have, as a package outside of it."""
