"""llama.cpp: what it places on which device, the cells of its cache, and the buffers of its graph."""
