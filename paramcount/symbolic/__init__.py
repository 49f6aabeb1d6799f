"""Integer polynomials in named sizes, and how they are factored and printed."""
