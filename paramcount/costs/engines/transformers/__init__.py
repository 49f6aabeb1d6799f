"""transformers: its cache, what a forward pass takes besides, and which device a device map gives a layer."""
