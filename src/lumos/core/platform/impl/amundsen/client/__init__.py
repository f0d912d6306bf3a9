"""The connection to Amundsen, and what its errors mean."""
