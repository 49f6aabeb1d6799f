"""How writers of files name and shape what a declaration declares: those of safetensors, and llama.cpp's of GGUF."""
