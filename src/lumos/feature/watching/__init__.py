"""Watching: events of storages, gathered into the folders that have to be looked into again."""
