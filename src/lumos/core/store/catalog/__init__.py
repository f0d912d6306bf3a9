"""The tables of the embedded catalog."""
