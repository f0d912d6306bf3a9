"""Apache Atlas: canonical models on one side, entities and type definitions on the other."""
