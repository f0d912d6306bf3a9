"""Use cases, one controller per family; they combine features and speak canonical models."""
