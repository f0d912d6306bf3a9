"""What a command runs in: the project with its settings, and the resources of one run."""
