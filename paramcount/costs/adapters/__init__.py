"""LoRA and its relatives: which modules they adapt, their parameters, and adapters with a given number of them."""
