"""X-MOD: XLM-RoBERTa with a small MLP for each language behind every layer; a token passes that of its own language."""

from typing import Any

from paramcount.architectures.roberta import Roberta
from paramcount.declare import Data, ops, parts, sizes

PREFIX = "roberta.encoder.layer.{layer}."


def languages(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Each once: the reference keeps them by name."""
    names = js.get("languages", ("en_XX",))
    if not isinstance(names, (list, tuple)) or any(not isinstance(name, str) or "." in name for name in names):
        raise sizes.make_value_error(names, "languages", "a list of names without dots")
    return tuple(dict.fromkeys(names))


def find_default(js: sizes.ConfigJson, c: Any) -> int | None:
    """The index of the language of texts of which nothing says it; None if it has to be given."""
    name = js.get("default_language")
    return None if name is None else list(c.languages).index(name)


class Xmod(Roberta):
    """Source: arXiv:2205.06266, section 3; XmodLayer of the reference."""

    reference = "XmodForMaskedLM"
    task_heads = "ROBERTA"
    equivalent_classes = ("XmodForCausalLM",)

    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    languages: sizes.Words = sizes.derived(languages)
    d_adapter: sizes.Natural = sizes.derived(lambda js, c: c["d_model"] // js.get("adapter_reduction_factor", 2))
    norms_before: sizes.Flag = sizes.hf("pre_norm")
    adapter_norm: sizes.Flag = sizes.hf("adapter_layer_norm")
    norm_reused: sizes.Flag = sizes.hf("adapter_reuse_layer_norm")
    norm_in_residual: sizes.Flag = sizes.hf("ln_before_adapter")

    default_language = sizes.setting(default=find_default)

    def inputs(c) -> dict[str, int | ops.Unknown | None]:
        return {"segments": 0, "language": c.default_language}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return super().embed(tokens, reads[0])

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        return reads[1:]

    def encode(c, x: Data, *reads: Data) -> Data:
        x = ops.layers(x, PREFIX, [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=reads)
        if c.norms_before:
            x = c.norm(x, "roberta.encoder.LayerNorm")
        return parts.first_pooled(x, "roberta.pooler.dense") if c.pooled else x

    def layer(c, x: Data, *reads: Data) -> Data:
        language, *memory = reads
        x = c.attend(x, "attention.")
        for source in memory:
            x = parts.crossing(x, "", lambda x, source: c.attend(x, "crossattention.", source), source)
        reuses = c.norm_reused and not c.adapter_norm  # one norm in two places
        x = x + parts.bert_mlp(c, c.norm(x, "output.LayerNorm") if c.norms_before else x)
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
            return x + parts.bert_attention(c, c.norm(x, name), prefix, memory)
        return c.norm(x + parts.bert_attention(c, x, prefix, memory), name)

    def norm_again(c, x: Data) -> Data:
        """The layer's last norm a second time."""
        names = ("output.LayerNorm.weight", "output.LayerNorm.bias")
        weights = tuple(ops.Weight(name, "norm", x.shape[-1:], tied_to=PREFIX + name) for name in names)
        return Data(ops.Norm("layer", c.norm_eps), (x,), x.shape, weights)

    def adapt(c, x: Data, language: Data) -> Data:
        """x through the adapter of the language of each token."""

        def adapter(x: Data) -> Data:
            return parts.plain_mlp(x, ("dense1", "dense2"), "mlp", c.d_adapter, activation=c.activation, bias=True)

        return ops.select(language, *(ops.block(x, f"output.adapter_modules.{name}.", adapter) for name in c.languages))
