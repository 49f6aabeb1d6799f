"""What a model takes to run and to train: memory, KV cache, FLOPs, adapters.

Weights are priced tensor by tensor and caches operation by operation, both read off the declaration, so every figure
is exact for what it counts. What no config determines is an assumption with a name: the result states it beside the
figure, and the caller can change it.
"""
