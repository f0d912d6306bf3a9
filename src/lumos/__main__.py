"""Runs the command line as `python -m lumos`."""

from lumos.framework_cli import main

main()
