"""What keys of a config.json mean beyond a plain size: derivations of fields, and conditions that the reference asks."""
