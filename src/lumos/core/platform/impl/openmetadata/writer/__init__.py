"""Brings OpenMetadata to what it is to hold, with what is read on the way to a write."""
