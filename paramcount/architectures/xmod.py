"""X-MOD: XLM-RoBERTa with a small MLP for each language behind every layer; a token passes that of its own language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.roberta import Roberta
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, block, layers, norm
from paramcount.parts.classic import first_pooled
from paramcount.parts.encoders import ROBERTA_HEAD, bert_attention, embeddings, masked_head, whole
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Flag, Natural, Words, derived, hf

PREFIX = "roberta.encoder.layer.{layer}."


def languages(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Each once: the reference keeps them by name."""
    names = js.get("languages", ("en_XX",))
    if not isinstance(names, (list, tuple)) or any(not isinstance(name, str) or "." in name for name in names):
        raise ParamcountError(f"= {describe_value(names)}", where="languages", expected="a list of names without dots")
    return tuple(dict.fromkeys(names))


class Xmod(Roberta):
    """Source: arXiv:2205.06266, section 3."""

    reference: ClassVar[str] = "XmodForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("XmodForCausalLM",)
    defaults: ClassVar = {}

    languages: Words = derived(languages)
    d_adapter: Natural = derived(lambda js, c: c["d_model"] // js.get("adapter_reduction_factor", 2))
    norms_before: Flag = hf("pre_norm", absent=False)
    adapter_norm: Flag = hf("adapter_layer_norm", absent=False)
    norm_reused: Flag = hf("adapter_reuse_layer_norm", absent=True)
    norm_in_residual: Flag = hf("ln_before_adapter", absent=True)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, segments: Data, language: Data, *memory: Data) -> Data:
            x = embeddings(c, tokens, segments, "roberta.", c.d_model)
            x = layers(
                x, PREFIX, [("layer", c.n_layers)], lambda kind, *inputs: layer(c, *inputs), reads=(language, *memory)
            )
            if c.norms_before:
                x = norm(x, "roberta.encoder.LayerNorm", bias=True)
            if c.pooled:
                x = first_pooled(x, "roberta.pooler.dense")
            return masked_head(c, x, "roberta.embeddings.word_embeddings", ROBERTA_HEAD) if head else x

        return whole(c, tokens, build, inputs=("segments", "language"))


def layer(c: Any, x: Data, language: Data, *memory: Data) -> Data:
    x = bert_attention(c, x, *memory, before=c.norms_before)
    again = c.norm_reused and not c.adapter_norm  # one norm in two places
    h = norm(x, "output.LayerNorm", bias=True) if c.norms_before else x
    x = x + plain_mlp(h, ("intermediate.dense", "output.dense"), "mlp", c.d_ff, bias=True)
    normed = x
    if c.adapter_norm:
        normed = norm(x, "output.adapter_layer_norm", bias=True)
    elif again:
        normed = renorm(x) if c.norms_before else norm(x, "output.LayerNorm", bias=True)
    x = adapters(c, normed, language) + (normed if c.norm_in_residual else x)
    if c.norms_before:
        return x
    return renorm(x) if again else norm(x, "output.LayerNorm", bias=True)


def renorm(x: Data) -> Data:
    """The layer's last norm a second time."""
    names = ("output.LayerNorm.weight", "output.LayerNorm.bias")
    return Data(
        "norm", (x,), x.shape, tuple(Weight(name, "norm", x.shape[-1:], tied_to=PREFIX + name) for name in names)
    )


def adapters(c: Any, x: Data, language: Data) -> Data:
    """x through each language's adapter, and of these what its own language gives."""

    def adapted(x: Data) -> Data:
        return plain_mlp(x, ("dense1", "dense2"), "mlp", c.d_adapter, bias=True)

    each = tuple(block(x, f"output.adapter_modules.{name}.", adapted) for name in c.languages)
    return Data("choose", (language, *each), x.shape)
