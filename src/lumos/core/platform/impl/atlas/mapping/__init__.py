"""Pure conversion between canonical models and what Atlas holds."""
