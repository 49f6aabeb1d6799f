"""What packed weights stand for: GPTQ, AWQ, FP8, MXFP4 and the types of GGUF."""
