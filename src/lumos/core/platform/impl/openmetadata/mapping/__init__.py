"""Pure conversion between canonical models and what OpenMetadata holds."""
