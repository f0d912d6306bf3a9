"""Import: brings a snapshot into the state or into another catalog."""
