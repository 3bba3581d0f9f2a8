"""Where examples come from: generated tasks, corpora, batches."""
