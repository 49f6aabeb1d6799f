"""The forward pass of a model as a flow: data passes through operations, which own the weights they read.

A declaration (`paramcount.architectures`) builds the flow; every other package reads it: counts read the weights;
traces, drawings and execution read the operations. A declaration only adds, subtracts and multiplies sizes, so it works
with ints, int64 arrays and symbols alike. This package knows nothing of configs, names or files.
"""

from paramcount.lazy import find_lazily

__getattr__ = find_lazily(__name__, __file__)
