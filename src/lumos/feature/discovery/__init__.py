"""From paths to datasets: which files belong together, and what their schemas share."""
