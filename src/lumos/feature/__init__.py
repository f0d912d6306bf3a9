"""What Lumos does for people, one package per use; features never import each other."""
