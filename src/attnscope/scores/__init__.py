"""What can be read off a model as a number per output and input position: Float[batch, out, inp]."""
