"""Idefics: Llama's layers, in front of some of which gated cross-attention looks at an image, after Flamingo."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

TABLES = ("model.embed_tokens.weight", "model.embed_tokens.additional_embedding.weight")


def crossings(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The numbers of the cross-attention layers. The reference needs one for each started group of layers."""
    n, interval = c["n_layers"], c["interval"]
    if n % interval:
        raise ParamcountError(
            f"= {interval} does not divide num_hidden_layers = {n}",
            where="cross_layer_interval",
            expected="a divisor of the number of layers",
        )
    return tuple(range(n // interval))


def has_a_known_start(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference builds no other gates; it cannot draw a single random value."""
    start, kind = js.get("alpha_initializer", "zeros"), js.get("alpha_type", "float")
    known = ("zeros", "ones", *(("normal", "gaussian", "random") if kind == "vector" else ()))
    if start not in known:
        raise ParamcountError(f"= {describe_value(start)}", where="alpha_initializer", choices=known)


class IdeficsVision(parts.ClipVision):
    """CLIP's encoder."""

    config_class = "IdeficsVisionConfig"

    d_model: sizes.Positive = sizes.hf("hidden_size", "embed_dim")


class IdeficsPerceiver(sizes.Sizes):
    """Latents that attend to the patches and to one another. Source: arXiv:2204.14198, section 3.1."""

    config_class = "IdeficsPerceiverConfig"

    section = "perceiver_config"

    n_latents: sizes.Positive = sizes.hf("resampler_n_latents")
    n_layers: sizes.Natural = sizes.hf("resampler_depth")
    n_heads: sizes.Positive = sizes.hf("resampler_n_heads")
    d_head: sizes.Positive = sizes.hf("resampler_head_dim")
    qk_norm: sizes.Flag = sizes.hf("qk_layer_norms_perceiver")

    def resample(c, patches: Data) -> Data:
        """[patches, d] to [n_latents, d]."""
        d = patches.shape[-1]
        x = ops.learned_rows("latents", "projector", c.n_latents, d)
        kinds = [("layer", c.n_layers)]
        x = ops.layers(x, "blocks.{layer}.", kinds, lambda kind, *x: c.layer(*x), reads=(patches,))
        return ops.layer_norm(x, "layer_norm", 1e-5)

    def layer(c, x: Data, patches: Data) -> Data:
        x = x + ops.block(x, "0.", c.attend, reads=(patches,))
        h = ops.linear(ops.layer_norm(x, "1.ln", 1e-5), "1.fc", "mlp.up", 4 * x.shape[-1])
        return x + ops.linear(ops.activate(h, "relu"), "1.c_proj", "mlp.down", x.shape[-1])

    def attend(c, x: Data, patches: Data) -> Data:
        h, heads = ops.layer_norm(x, "latents_layer_norm", 1e-5), (c.n_heads, c.d_head)
        memory = ops.stack_rows(ops.layer_norm(patches, "context_layer_norm", 1e-5), h, length="patches and latents")
        q, k, v = (ops.linear(y, f"{n}_proj", f"qkv.{n}", heads) for n, y in zip("qkv", (h, memory, memory)))
        if c.qk_norm:
            q, k = ops.layer_norm(q, "q_layer_norm", 1e-5), ops.layer_norm(k, "k_layer_norm", 1e-5)
        return ops.linear(ops.attend(q, k, v), "output_proj", "output_projection", x.shape[-1])


class Idefics(parts.AttentionDecoder):
    """All tokens look at the image. `interval`: layers behind each cross-attention, `crossings`: its numbers.

    Source: arXiv:2306.16527, section 4.1; arXiv:2204.14198, section 2.2; modeling_idefics.py of the reference.
    """

    reference = "IdeficsForVisionText2Text"
    base_model = "IdeficsModel"
    rotated = "d_head"
    is_section_type = False
    conditions = (
        sizes.padding_in_table(0),
        sizes.angles_fit_heads,
        sizes.one_of("alpha_type", ("float", "vector"), "float"),
        has_a_known_start,
    )

    n_kv_heads: sizes.Positive = sizes.derived(lambda js, c: c["n_heads"])
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    n_additional: sizes.Natural = sizes.hf("additional_vocab_size")
    interval: sizes.Positive = sizes.hf("cross_layer_interval")
    crossings: sizes.Indices = sizes.derived(crossings)
    qk_norm: sizes.Flag = sizes.hf("qk_layer_norms")
    vector_gates: sizes.Flag = sizes.derived(lambda js, c: js.get("alpha_type", "float") == "vector")
    has_perceiver: sizes.Flag = sizes.hf("use_resampler")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    vision: IdeficsVision
    perceiver: IdeficsPerceiver

    def forward(c, tokens: Data) -> Data:
        return c.decode_with(c.embed(tokens), c.read_image())

    def read_image(c) -> Data:
        image = ops.block(c.vision.image(), "model.vision_model.", c.vision.forward, part="vision")
        if c.has_perceiver:
            image = ops.block(image, "model.perceiver_resampler.", c.perceiver.resample, part="projector")
        return image

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return () if c.crossings else (ops.Unreachable(c.read_image(), "no layer reads the image"),)

    def decode_with(c, x: Data, image: Data) -> Data:
        for i in c.crossings:
            x = parts.crossing(x, f"model.gated_cross_attn_layers.{i}.", c.look, image)
            kinds = [("layer", c.interval)]
            x = ops.layers(x, "model.layers.{layer}.", kinds, lambda kind, x: c.layer(x), first=i * c.interval)
        return c.head(c.last(x))

    def embed(c, tokens: Data) -> Data:
        return ops.lookup_continued(tokens, TABLES[0], "embedding", c.vocab_size, c.d_model, TABLES[1], c.n_additional)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def look(c, x: Data, image: Data) -> Data:
        """Cross-attention and an MLP, each through a gate."""
        x = x + c.gate(c.cross_attention(c.norm(x, "input_layernorm"), image), "alpha_cross_attn")
        return x + c.gate(c.gated_mlp(c.norm(x, "post_attention_layernorm")), "alpha_dense")

    def cross_attention(c, x: Data, image: Data) -> Data:
        heads, name = (c.n_heads, c.d_head), "cross_attn."
        q, k, v = (ops.linear(y, f"{name}{n}_proj", f"qkv.{n}", heads) for n, y in zip("qkv", (x, image, image)))
        if c.qk_norm:
            q, k = (ops.rms_norm(y, f"{name}{n}_layer_norm", c.norm_eps) for n, y in (("q", q), ("k", k)))
        return ops.linear(ops.attend(q, k, v), name + "o_proj", "output_projection", c.d_model)

    def gate(c, x: Data, name: str) -> Data:
        """x times tanh of a learned value, or of one for each channel."""
        shape = (1, 1, c.d_model) if c.vector_gates else (1,)
        return ops.multiply_vector(x, name, "other", *shape, function="tanh")

    def head(c, x: Data) -> Data:
        tables = TABLES if c.tie_word_embeddings else (None, None)
        logits = ops.linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=tables[0])
        if type(c.n_additional) is int and c.n_additional == 0:
            return logits
        return ops.join(logits, ops.linear(x, "lm_head.additional_fc", "lm_head", c.n_additional, tied_to=tables[1]))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_pairs(c, "d_head")
        if c.n_layers != len(c.crossings) * c.interval:
            found = f"= {c.n_layers}, but there are {len(c.crossings)} × {c.interval}"
            raise ParamcountError(found, where=FieldName("n_layers"), expected=f"{len(c.crossings) * c.interval}")
