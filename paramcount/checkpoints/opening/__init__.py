"""Opening a checkpoint: what a path names, which files belong together, and where they contradict each other."""
