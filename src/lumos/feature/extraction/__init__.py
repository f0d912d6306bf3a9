"""Reports made from what the catalog, the snapshots and the runs say."""
