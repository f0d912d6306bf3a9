"""One way to list and read files, wherever they are kept: local, object storage, HDFS."""
