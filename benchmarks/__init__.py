"""Speed: ours against what a user would write, in one run."""
