"""The Spark side: the only importer of pyspark."""
