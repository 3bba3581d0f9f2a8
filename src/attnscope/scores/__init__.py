"""What can be read off a model as a number for each output and input position."""
