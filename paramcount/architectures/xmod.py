"""X-MOD: XLM-RoBERTa with a small MLP for each language behind every layer; a token passes that of its own language."""

from typing import Any

from paramcount.architectures.roberta import Roberta
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Norm, Unknown, Weight, block, layers, select
from paramcount.parts.classic import crossing, first_pooled
from paramcount.parts.encoders import bert_attention, bert_mlp
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, Words, derived, hf, setting

PREFIX = "roberta.encoder.layer.{layer}."


def languages(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """Each once: the reference keeps them by name."""
    names = js.get("languages", ("en_XX",))
    if not isinstance(names, (list, tuple)) or any(not isinstance(name, str) or "." in name for name in names):
        raise ParamcountError(f"= {describe_value(names)}", where="languages", expected="a list of names without dots")
    return tuple(dict.fromkeys(names))


def find_default(js: ConfigJson, c: Any) -> int | None:
    """The index of the language of texts of which nothing says it; None if it has to be given."""
    name = js.get("default_language")
    return None if name is None else list(c.languages).index(name)


class Xmod(Roberta):
    """Source: arXiv:2205.06266, section 3; XmodLayer of the reference."""

    reference = "XmodForMaskedLM"
    task_heads = "ROBERTA"
    equivalent_classes = ("XmodForCausalLM",)

    n_layers: Positive = hf()  # the reference needs one
    languages: Words = derived(languages)
    d_adapter: Natural = derived(lambda js, c: c["d_model"] // js.get("adapter_reduction_factor", 2))
    norms_before: Flag = hf("pre_norm")
    adapter_norm: Flag = hf("adapter_layer_norm")
    norm_reused: Flag = hf("adapter_reuse_layer_norm")
    norm_in_residual: Flag = hf("ln_before_adapter")

    default_language = setting(default=find_default)

    def inputs(c) -> dict[str, int | Unknown | None]:
        return {"segments": 0, "language": c.default_language}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return super().embed(tokens, reads[0])

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        return reads[1:]

    def encode(c, x: Data, *reads: Data) -> Data:
        x = layers(x, PREFIX, [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=reads)
        if c.norms_before:
            x = c.norm(x, "roberta.encoder.LayerNorm")
        return first_pooled(x, "roberta.pooler.dense") if c.pooled else x

    def layer(c, x: Data, *reads: Data) -> Data:
        language, *memory = reads
        x = c.attend(x, "attention.")
        for source in memory:
            x = crossing(x, "", lambda x, source: c.attend(x, "crossattention.", source), source)
        reuses = c.norm_reused and not c.adapter_norm  # one norm in two places
        x = x + bert_mlp(c, c.norm(x, "output.LayerNorm") if c.norms_before else x)
        normed = x
        if c.adapter_norm:
            normed = c.norm(x, "output.adapter_layer_norm")
        elif reuses:
            normed = c.norm_again(x) if c.norms_before else c.norm(x, "output.LayerNorm")
        x = c.adapt(normed, language) + (normed if c.norm_in_residual else x)
        if c.norms_before:
            return x
        return c.norm_again(x) if reuses else c.norm(x, "output.LayerNorm")

    def attend(c, x: Data, prefix: str, memory: Data | None = None) -> Data:
        name = prefix + "output.LayerNorm"
        if c.norms_before:
            return x + bert_attention(c, c.norm(x, name), prefix, memory)
        return c.norm(x + bert_attention(c, x, prefix, memory), name)

    def norm_again(c, x: Data) -> Data:
        """The layer's last norm a second time."""
        names = ("output.LayerNorm.weight", "output.LayerNorm.bias")
        weights = tuple(Weight(name, "norm", x.shape[-1:], tied_to=PREFIX + name) for name in names)
        return Data(Norm("layer", c.norm_eps), (x,), x.shape, weights)

    def adapt(c, x: Data, language: Data) -> Data:
        """x through the adapter of the language of each token."""

        def adapter(x: Data) -> Data:
            return plain_mlp(x, ("dense1", "dense2"), "mlp", c.d_adapter, activation=c.activation, bias=True)

        return select(language, *(block(x, f"output.adapter_modules.{name}.", adapter) for name in c.languages))
