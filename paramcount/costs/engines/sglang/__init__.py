"""SGLang: what it loads, the pools of its cache, and what it reserves besides."""
