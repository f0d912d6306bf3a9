"""Alerts on changes: who gets them, in what words, through which channel."""
