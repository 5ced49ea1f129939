"""Statistics: the cost of kernels on a GPU one does not have, learned from GPUs one has."""
