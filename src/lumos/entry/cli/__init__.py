"""The commands of `lumos`, one module per area."""
