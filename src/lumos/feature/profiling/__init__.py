"""Profiling: figures on the data of a dataset, column by column."""
