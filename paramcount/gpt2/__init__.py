"""GPT-2 written by hand from the paper and the released code: an independent check of the declaration."""
