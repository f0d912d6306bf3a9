"""Pure conversion between canonical models and what Snowflake holds."""
