"""Pure conversion between canonical models and what Amundsen holds."""
