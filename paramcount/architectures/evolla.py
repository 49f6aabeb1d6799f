"""Evolla: ESM's layers read a protein, latents attend to it, and every few of Llama's layers look at the latents."""

from typing import Any

from paramcount.architectures.esm import Esm, rotary_angles_fit
from paramcount.architectures.llama import Llama
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

SECTION = "protein_encoder_config"
PROTEIN = "model.protein_encoder."


@sizes.options_first
def in_section(js: sizes.ConfigJson, c: sizes.FieldValues, condition: sizes.Condition) -> None:
    """The condition with errors that name the section too."""
    try:
        condition(js, c)
    except ParamcountError as error:
        raise error.add_block(SECTION) from None


def ids_are_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    for key in ("mask_token_id", "pad_token_id"):
        if type(js.get(key, 0)) is not int:
            raise sizes.make_value_error(js[key], key, "a token id")
    sizes.padding_inside(1, places=2 if c["positions_added"] else 0)(js, c)


def is_encoder(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    for key in ("is_decoder", "add_cross_attention"):
        if js.get(key):
            raise ParamcountError("= true is not supported", where=key, expected="false")


class SaProt(Esm):
    """ESM-2 over tokens that stand for an amino acid and the structure around it.

    Source: openreview.net/forum?id=6MRm3G4NiU, section 3; EvollaSaProtProteinEncoder of the reference.
    """

    section = SECTION
    conditions = tuple(in_section(condition) for condition in (is_encoder, ids_are_known, rotary_angles_fit))
    defaults = {
        "d_model": 1280,
        "n_layers": 33,
        "n_heads": 20,
        "d_ff": 5120,
        "is_decoder": False,
        "cross_attention": False,
    }

    vocab_size: sizes.Positive = sizes.hf(absent=446)
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings", absent=1026)
    embeddings_normed: sizes.Flag = sizes.hf("emb_layer_norm_before", absent=False)
    positions_added: sizes.Flag = sizes.derived(lambda js, c: js.get("position_embedding_type", "rotary") == "absolute")
    positions_rotated: sizes.Flag = sizes.derived(lambda js, c: js.get("position_embedding_type", "rotary") == "rotary")
    tie_word_embeddings: sizes.Flag = sizes.derived(lambda js, c: False)

    norm_eps = sizes.setting("layer_norm_eps", default=1e-5)
    base = sizes.setting("rope_theta", default=10_000.0)
    first_position = sizes.setting(default=lambda js, c: js.get("pad_token_id", 1) + 1)
    masked_id = sizes.setting(
        default=lambda js, c: js.get("mask_token_id", 4) if js.get("token_dropout", True) else None,
        kinds={"token_dropout": sizes.FLAG._replace(takes_null=False)},
    )

    def look_up(c, tokens: Data) -> Data:
        table = "esm.embeddings.word_embeddings.weight"
        return ops.lookup(tokens, table, "other_embedding", c.vocab_size, c.d_model)

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        """The angles, which are stored even if positions are added instead."""
        return (ops.stored_sinusoids(tokens, "esm.rotary_embeddings.inv_freq", c.d_head, c.n_frequencies, c.base),)

    def layer(c, x: Data, *angles: Data) -> Data:
        return super().layer(x, *(angles if c.positions_rotated else ()))


class EvollaResampler(sizes.Sizes):
    """Latents that attend to the protein and to one another. Source: arXiv:2204.14198, section 3.1."""

    n_latents: sizes.Positive = sizes.hf("resampler_num_latents", absent=64)
    n_layers: sizes.Natural = sizes.hf("resampler_depth", absent=6)
    n_heads: sizes.Positive = sizes.hf("resampler_heads", absent=8)
    d_head: sizes.Positive = sizes.hf("resampler_dim_head", absent=64)
    n_ff_multiples: sizes.Positive = sizes.hf("resampler_ff_mult", absent=4)

    def resample(c, protein: Data, d_model: ops.Size) -> Data:
        """[protein, d] to [n_latents, d_model]."""
        x = ops.learned_rows("latents", "projector", c.n_latents, protein.shape[-1])
        kinds = [("layer", c.n_layers)]
        x = ops.layers(x, "layers.{layer}.", kinds, lambda kind, *x: c.layer(*x), reads=(protein,))
        return ops.layer_norm(ops.linear(x, "protein_projector", "projector", d_model, bias=True), "norm", 1e-5)

    def layer(c, x: Data, protein: Data) -> Data:
        x = x + c.attend(x, protein)
        return x + normed_mlp(x, "1.", c.n_ff_multiples)

    def attend(c, x: Data, protein: Data) -> Data:
        h = ops.layer_norm(x, "0.norm_latents", 1e-5)
        memory = ops.stack_rows(ops.layer_norm(protein, "0.norm_media", 1e-5), h, length="protein and latents")
        heads = (c.n_heads, c.d_head)
        q = ops.linear(h, "0.to_q", "qkv.q", heads)
        k, v = ops.fused(memory, "0.to_kv", {"qkv.k": heads, "qkv.v": heads}, bias=False)
        return ops.linear(ops.attend(q, k, v), "0.to_out", "output_projection", x.shape[-1])


def normed_mlp(x: Data, prefix: str, n_multiples: ops.Size) -> Data:
    h = ops.layer_norm(x, prefix + "norm", 1e-5)
    return parts.plain_mlp(h, (prefix + "fc1", prefix + "fc2"), "mlp", n_multiples * x.shape[-1], activation="gelu")


def adapted_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Layers that look at the protein."""
    n = c["n_layers"]
    step = max(n // js.get("aligner_num_add_layers", 8), 1)
    return tuple(range(step - 1, n, step))


class Evolla(Llama):
    """Source: doi:10.1101/2025.01.05.630192; modeling_evolla.py of the reference."""

    reference = "EvollaForProteinText2Text"
    is_section_type = False
    base_model = "EvollaModel"
    unused_keys = ("tie_word_embeddings",)
    defaults = {"vocab_size": 128256}

    n_kv_heads: sizes.Positive = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.derived(lambda js, c: False)
    d_adapter_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    adapters: sizes.Indices = sizes.derived(adapted_layers)
    n_ff_multiples: sizes.Positive = sizes.hf("aligner_ffn_mult")
    adapter_bias: sizes.Flag = sizes.hf("aligner_enable_bias", null=False)
    protein: SaProt
    resampler: EvollaResampler

    rope = sizes.rotary(500_000, positions=8192)
    adapter_scale = sizes.setting(default=lambda js, c: c.n_heads**-0.5)

    def forward(c, tokens: Data) -> Data:
        return c.head(c.transform(c.embed(tokens), c.read_protein()))

    def read_protein(c: Any) -> Data:
        """The tokens of a protein to latents of Llama's size."""
        moved = ("esm.", PROTEIN + "model.")
        tokens = ops.given("protein tokens", "protein")
        x = ops.rename_weights(
            ops.as_model(ops.block(tokens, "", lambda x: c.protein.read(x, (), (), head=False), part="encoder")),
            moved=moved,
        )
        prefix = PROTEIN + "sequence_compressor_resampler."
        return ops.block(x, prefix, lambda x: c.resampler.resample(x, c.d_model), part="projector")

    def kinds(c) -> parts.Kinds:
        found: list[tuple[str, ops.Size]] = []
        reached = 0
        for i in c.adapters:
            found += [("plain", i - reached), ("adapted", 1)]
            reached = i + 1
        return [*found, ("plain", c.n_layers - reached)]

    def layer(c, x: Data, protein: Data, kind: str) -> Data:  # type: ignore[override]
        x = super().layer(x)
        return parts.crossing(x, "adapter.", c.look, protein) if kind == "adapted" else x

    def look(c, x: Data, protein: Data) -> Data:
        """Cross-attention and an MLP, each times tanh of a learned value."""
        heads, h = (c.n_heads, c.d_adapter_head), ops.rms_norm(x, "attention_norm", 1e-6)
        q = ops.linear(h, "query", "qkv.q", heads, bias=True)
        k, v = (ops.linear(protein, f"{y}_protein", f"qkv.{y[0]}", heads, bias=True) for y in ("key", "value"))
        a = ops.attend(q, k, v, scale=c.adapter_scale)  # [n, n_heads, d_adapter_head]
        a = ops.linear(a, "out_proj", "output_projection", c.d_model, bias=c.adapter_bias)
        x = x + ops.multiply_vector(a, "gate_attention", "other", 1, function="tanh")
        return x + ops.multiply_vector(normed_mlp(x, "ff.", c.n_ff_multiples), "gate_ffw", "other", 1, function="tanh")

    def legacy_buffers(c) -> sizes.Buffers:
        """Frequencies, once in each layer of the protein's encoder."""
        name = PROTEIN + "model.encoder.layer.{layer}.attention.self.rotary_embeddings.inv_freq"
        return ((name, (c.protein.n_frequencies,), c.protein.n_layers),)

    def check(c) -> None:
        super().check()
        sizes.check_layer_indices(c, "adapters", "n_layers")
