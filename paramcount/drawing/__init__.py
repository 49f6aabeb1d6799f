"""Pictures to scale: a block, bars of many models, a report."""
