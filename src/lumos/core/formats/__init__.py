"""Pure readers, one per file format: bytes in, facts out; no network, no writing."""
