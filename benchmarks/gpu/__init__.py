"""Programs for a GPU that is not there: compiled for it, read, and how fast they would be."""
