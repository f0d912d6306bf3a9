"""A catalog for Lumos: a folder of JSON files, to be kept under version control."""
