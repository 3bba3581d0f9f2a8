"""Units of training: the loop, its objective, its evaluations, and many units at once."""
