"""Parts of a forward pass that several architectures share: attention, MLPs, vision encoders.

A part is a function from Data to Data. It takes sizes and data and adds operations to the flow; it reads no config and
knows no model.
"""

from paramcount.lazy import find_lazily

__getattr__ = find_lazily(__name__, __file__)
