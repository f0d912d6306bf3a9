"""Tells people of changes that concern them: whom, in what words, through which channel."""
