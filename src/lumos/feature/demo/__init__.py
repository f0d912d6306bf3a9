"""A small lake that a person recognises, made from nothing, to see and to test Lumos on."""
