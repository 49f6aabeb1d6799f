"""Why that many: formulas, and the causes of published figures."""
