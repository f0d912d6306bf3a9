"""Pure conversion between canonical models and what DataHub holds."""
