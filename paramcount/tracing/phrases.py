"""Names of the weights of each component, as tables and drawings show them."""

from __future__ import annotations

from paramcount.flow import Data
from paramcount.flow.operation import Form
from paramcount.output.weight_names import COMPONENTS

GENERAL_COMPONENTS = ("other", "mixer")  # their names say less than that of the operation
EMBEDDINGS = {"vision": "patch embedding", "audio": "audio embedding"}  # {part: name of an embedding without a lookup}


def name_data(data: Data, components: tuple[str, ...], part: str) -> str:
    """The name of an operation: that of its weights, or if it has none, its own."""
    if not data.operation.named_by_weights or not components:
        return data.operation.label
    names = list(dict.fromkeys(name_component(name, data, part) for name in components))
    return "q, k and v" if names == ["queries", "keys", "values"] else ", ".join(names)


def name_component(component: str, data: Data, part: str) -> str:
    is_lookup = data.operation.form is Form.LOOKUP
    if component in GENERAL_COMPONENTS:
        return data.operation.label
    if component == "embedding" and not is_lookup:
        return EMBEDDINGS.get(part, "embedding projection")
    if component == "router" and any("shared" in weight.name for weight in data.weights):
        return "shared expert gate"
    if component == "position" and is_lookup and data.inputs and (len(data.inputs[0].shape), len(data.shape)) == (2, 3):
        return "relative position bias"  # a value per head for each pair of tokens: [n, n] becomes [n, n, heads]
    if component == "other_embedding" and is_lookup:
        return name_table(data.weights[0].name)
    return COMPONENTS.get(component, component.rpartition(".")[2].replace("_", " "))


def name_table(name: str) -> str:
    """The name of an embedding from that of its weight.

    >>> name_table("embeddings.token_type_embeddings.weight"), name_table("decoder.embed_tokens.weight")
    ('token type embedding', 'token embedding')
    """
    words = name.removesuffix(".weight").rpartition(".")[2].replace("tokens", "token").split("_")
    return " ".join([*(word for word in words if not word.startswith("embed")), "embedding"])


def describe_data(data: Data) -> str:
    """The explanation of an operation; "" if its name says the same."""
    note = data.operation.describe() if data.inputs else ""
    return "" if note.casefold() == data.operation.label.casefold() else note
