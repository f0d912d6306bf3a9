"""A source that Lumos does not have, as a package outside of it."""
