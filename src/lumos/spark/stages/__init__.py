"""The stages of the pipeline: DataFrame in, DataFrame out, the thinking handed in as functions."""
