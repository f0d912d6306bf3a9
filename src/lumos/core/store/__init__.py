"""Where Lumos keeps its state: the database, the snapshots, and the lock over both."""
