"""Loading: the model that a name, a path, a mapping or a config object identifies.

Models come from the zoo, a file, the Hugging Face cache or the Hub. This is the only package that joins the zoo with
config files; everything above it takes loaded models.
"""

from paramcount.loading.files import load_document, load_path
from paramcount.loading.models import load, select_models

__all__ = ["load", "load_document", "load_path", "select_models"]
