"""The ways into Lumos; each turns its own input into one controller call."""
