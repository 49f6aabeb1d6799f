"""DeepSeek-V4: hyper-connections, and one head that is both key and value.

Layers compress it over blocks of tokens; the first layers choose experts by token id.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, count_noun, make_choice_error

KINDS = ("sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention")
RATIOS = {0: KINDS[0], 4: KINDS[1], 128: KINDS[2]}
ATTENTION = ("hc_attn_fn", "hc_attn_base", "hc_attn_scale")
FEED_FORWARD = ("hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale")
HEAD = ("model.hc_head.hc_fn", "model.hc_head.hc_base", "model.hc_head.hc_scale")


def layer_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Layer types from their names, or from compression ratios, or by default.

    The default: two heavily compressed layers, then heavily and sparsely compressed layers in turn.
    """
    words, ratios, n = js.get("layer_types"), js.get("compress_ratios"), c["n_layers"]
    if words is None and ratios is not None:
        words = [RATIOS[ratio] for ratio in ratios]
    if words is None:
        words = [KINDS[1] if i >= 2 and i % 2 else KINDS[2] for i in sizes.per_layer(c)]
    return tuple(words[:n])


def hashed(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers that choose experts by token id: by words, or the first few."""
    words, known, n = js.get("mlp_layer_types"), ("hash_moe", "moe"), c["n_layers"]
    if words is None:
        return tuple(
            range(
                min(n, sizes.check_no_types(js, "num_hash_layers", 3) if js.get("num_hash_layers") is not None else 3)
            )
        )
    if len(words) < n:
        raise ParamcountError(
            f"has {count_noun(len(words), 'entry')} for {count_noun(n, 'layer')}",
            where="mlp_layer_types",
            expected="one entry per layer",
        )
    for i, word in enumerate(words[:n]):
        if word not in known:
            raise make_choice_error(word, known, where=f"mlp_layer_types.{i}")
    return tuple(i for i in sizes.per_layer(c) if words[i] == "hash_moe")


@sizes.options_first
def block_size(js: sizes.ConfigJson, c: sizes.FieldValues, word: str, key: str, absent: int) -> int:
    """How many tokens become one."""
    rates = js.get("compress_rates")
    n = (
        js.get(key)
        if js.get(key) is not None
        else absent
        if rates is None or word not in c["layer_types"]
        else rates[word]
    )
    if type(n) is not int or n < 1:
        raise sizes.make_value_error(n, f"compress_rates.{word}", "a positive integer")
    return n


def find_share(js: sizes.ConfigJson, d_head: int, label: str) -> Any:
    """The part of a head that rotates. `label`: of the angles, those of layers with or without compression."""
    share, width, rope = (
        js.get("partial_rotary_factor"),
        js.get("qk_rope_head_dim"),
        js.get("rope_scaling") or js.get("rope_parameters") or {},
    )
    if all(isinstance(rope.get(name), Mapping) for name in ("main", "compress")):
        return rope[label].get("partial_rotary_factor", 1.0 if share is None else share)
    if share is None:
        return 0.125 if width is None else width / d_head
    return share


def turned(label: str) -> sizes.Derivation:
    """How much of a head is rotated, in pairs. `label`: as in `find_share`."""
    return lambda js, c: sizes.in_pairs(c["d_head"], find_share(js, c["d_head"], label))


def read_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """The rotary positions of layers without compression."""
    given = config.get("rope_scaling") or config.get("rope_parameters") or {}
    main = given.get("main", {})
    base = main.get("rope_theta", config.get("rope_theta", 10_000.0))
    turned = sizes.read_layer_block({**main, "rope_theta": base}, None, config, 1048576)
    return sizes.mark_odd(turned, c.d_head, find_share(config, c.d_head, "main"))


def read_far_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """The rotary positions of layers that compress, whose YaRN does not scale cos and sin unless that is stated."""
    given = config.get("rope_scaling") or config.get("rope_parameters") or {}
    theta = config.get("compress_rope_theta", 160_000.0)
    if isinstance(given.get("main"), Mapping) and isinstance(given.get("compress"), Mapping):
        own = given["compress"]
        theta = own.get("rope_theta", theta)
    else:
        own = {"attention_factor": 1.0, **given}
    turned = sizes.read_layer_block({**own, "rope_theta": theta}, None, config, 1048576)
    return sizes.mark_odd(turned, c.d_head, find_share(config, c.d_head, "compress"))


class DeepseekV4(sizes.Sizes):
    """Source: arXiv:2606.19348, section 2. Layers with a window alone rotate `d_rope` of a head, the others
    `d_far_rope`.
    """

    reference = "DeepseekV4ForCausalLM"
    is_section_type = True
    reference_names = {
        ".ffn.": ".mlp.",
        ".hc_attn_": ".attn_hc.",
        ".hc_ffn_": ".ffn_hc.",
    }
    modules = {
        ".attn.wq_a": (".self_attn.q_a_proj",), ".attn.wq_b": (".self_attn.q_b_proj",),
        ".attn.wkv": (".self_attn.kv_proj",),
        ".attn.wo_a": (".self_attn.o_a_proj",), ".attn.wo_b": (".self_attn.o_b_proj",),
        ".attn.compressor.wkv": (".self_attn.compressor.kv_proj",),
        ".attn.compressor.wgate": (".self_attn.compressor.gate_proj",),
        ".attn.indexer.wq_b": (".self_attn.compressor.indexer.q_b_proj",),
        ".attn.indexer.weights_proj": (".self_attn.compressor.indexer.scorer.weights_proj",),
        ".attn.indexer.compressor.wkv": (".self_attn.compressor.indexer.kv_proj",),
        ".attn.indexer.compressor.wgate": (".self_attn.compressor.indexer.gate_proj",),
        ".shared_experts.w1": (".shared_experts.gate_proj",), ".shared_experts.w2": (".shared_experts.down_proj",),
        ".shared_experts.w3": (".shared_experts.up_proj",),
        ".ffn.experts": (".mlp.experts",), ".ffn.gate": (".mlp.gate",), "head": ("lm_head",),
    }  # fmt: skip
    linear_subclasses = (".attn.wo_a.weight",)
    linear_by_component = False
    float32_if_float16 = (
        "self_attn.compressor.kv_proj",
        "self_attn.compressor.gate_proj",
        "self_attn.compressor.indexer.kv_proj",
        "self_attn.compressor.indexer.gate_proj",
        "self_attn.compressor.indexer.scorer.weights_proj",
        *("compressor.wkv", "compressor.wgate", "indexer.weights_proj"),  # as saved
    )
    float32 = (
        "attn_hc",
        "ffn_hc",
        "hc_head",
        "sinks",
        "position_bias",
        "e_score_correction_bias",
        "q_a_norm",
        "kv_norm",
        "input_layernorm",
        "post_attention_layernorm",
        "norm",
        *(*ATTENTION, *FEED_FORWARD, "attn_sink", "ape", "gate.bias", "q_norm", "attn_norm", "ffn_norm"),  # as saved
    )
    own_layer_types = True
    conditions = (sizes.padding_in_table(None), sizes.not_null("n_routed_experts", "moe_intermediate_size"))

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_streams: sizes.Positive = sizes.hf("hc_mult")
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    d_rope: sizes.Positive = sizes.derived(turned("main"))
    d_far_rope: sizes.Positive = sizes.derived(turned("compress"))
    d_q_lora: sizes.Positive = sizes.hf()
    n_o_groups: sizes.Positive = sizes.hf("o_groups")
    d_o_lora: sizes.Positive = sizes.hf("o_lora_rank")
    d_o_group: sizes.Positive = sizes.derived(lambda js, c: c["n_heads"] * c["d_head"] // c["n_o_groups"])
    layer_types: sizes.Words = sizes.derived(layer_words)
    window: sizes.Positive = sizes.hf()
    sparse_block: sizes.Positive = sizes.derived(block_size(KINDS[1], "compress_rate_csa", 4))
    heavy_block: sizes.Positive = sizes.derived(block_size(KINDS[2], "compress_rate_hca", 128))
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Positive = sizes.hf("index_topk")
    hash_layers: sizes.Indices = sizes.derived(hashed)
    d_expert: sizes.Natural = sizes.hf("intermediate_size", "moe_intermediate_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    norm_eps = sizes.setting("rms_norm_eps")
    streams_eps = sizes.setting("hc_eps")
    activation = sizes.setting("hidden_act")
    rope = sizes.setting(default=read_rope)
    far_rope = sizes.setting(default=read_far_rope)
    limit = sizes.setting("swiglu_limit")
    scoring = sizes.setting("scoring_func")
    routed_scale = sizes.setting("routed_scaling_factor")
    sinkhorn_iterations = sizes.setting("hc_sinkhorn_iters", kind=sizes.NATURAL)

    def forward(c, tokens: Data) -> Data:
        x = ops.lookup(tokens, "model.embed_tokens.weight", "embedding", c.vocab_size, c.d_model)
        x = ops.to_every_stream(x, c.n_streams)
        hashing = set(c.hash_layers)
        kinds = [((word, "hash" if i in hashing else "moe"), 1) for i, word in enumerate(c.layer_types)]
        x = ops.layers(
            x, "model.layers.{layer}.", kinds, lambda kind, x, tokens: layer(c, kind, x, tokens), reads=(tokens,)
        )
        x = parts.collapse_streams(c, x, HEAD)
        return parts.head(c, c.norm(x, "model.norm"), "model.embed_tokens.weight", "head")

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)

    def unused_fields(c) -> tuple[str, ...]:
        """A layer that chooses by token id looks up as many experts as it is told, some of them perhaps twice."""
        return ("n_active_experts",) if len(c.hash_layers) == c.n_layers else ()

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        sizes.check_at_most(c, "d_rope", "d_head")
        sizes.check_at_most(c, "d_far_rope", "d_head")
        if KINDS[1] in c.layer_types:
            sizes.check_at_most(c, "d_far_rope", "d_index")
        if c.n_heads * c.d_head % c.n_o_groups:
            found, widths = (
                f"= {c.n_o_groups} does not divide "
                + FieldName("n_heads")
                + " × "
                + FieldName("d_head")
                + f" = {c.n_heads} × {c.d_head}",
                (c.n_o_groups, c.n_heads, c.d_head),
            )
            raise ParamcountError(
                found, where=FieldName("n_o_groups"), expected=f"a divisor of {c.n_heads * c.d_head}", sizes=widths
            )


def layer(c: Any, kind: tuple[str, str], x: Data, tokens: Data) -> Data:
    word, choice = kind
    x = parts.connect_all(c, x, ATTENTION, lambda h: attention(c, c.norm(h, "attn_norm"), "attn.", word))
    chosen_by = tokens if choice == "hash" else None
    return parts.connect_all(c, x, FEED_FORWARD, lambda h: moe(c, c.norm(h, "ffn_norm"), "ffn.", chosen_by))


def attention(c: Any, x: Data, prefix: str, word: str) -> Data:
    """Attention with one head that is both key and value, shared by all query heads.

    Queries attend to the tokens in the window and to compressed blocks of the tokens before it.
    """
    d_rope, turned = (c.d_rope, c.rope) if word == KINDS[0] else (c.d_far_rope, c.far_rope)
    latent = c.norm(ops.linear(x, prefix + "wq_a", "qkv.q_down", c.d_q_lora), prefix + "q_norm")
    q = ops.plain_norm(ops.linear(latent, prefix + "wq_b", "qkv.q_up", (c.n_heads, c.d_head)), "rms", c.norm_eps)
    q = rope_end(q, d_rope, turned)
    kv = rope_end(c.norm(ops.linear(x, prefix + "wkv", "qkv.kv", (1, c.d_head)), prefix + "norm"), d_rope, turned)
    mask, sinks = ops.see_earlier(c.window), ops.Weight(prefix + "attn_sink", "other", (c.n_heads,))
    kv = ops.cache(kv, mask)  # [m, 1, d_head]
    s = ops.scores(q, kv)  # [n_heads, n, m]
    if word == KINDS[0]:
        a = ops.weighted_sum(ops.softmax(s, mask=mask, sinks=sinks), kv)  # [n, n_heads, d_head]
    else:
        sparse = word == KINDS[1]
        size = c.sparse_block if sparse else c.heavy_block
        blocks = compress(c, x, prefix + "compressor.", "qkv.compressor", c.d_head, size, overlapping=sparse)
        blocks = ops.cache(blocks, mask)  # [blocks, d_head]
        of_blocks = ops.scores(q, blocks)  # [n_heads, n, blocks]
        if sparse:
            of_blocks = ops.hide(of_blocks, ops.Chosen(index_blocks(c, x, latent, prefix + "indexer.")))
        of_blocks = ops.hide(of_blocks, ops.CompressedBlocks(size))
        a = ops.weighted_sum(ops.softmax(s, of_blocks, mask=mask, sinks=sinks), kv, blocks)  # [n, n_heads, d_head]
    return grouped_output(c, rope_end(a, d_rope, turned, "reversed interleaved"), prefix)


def rope_end(
    x: Data,
    d_rope: ops.Size,
    turned: ops.Rope | ops.Unknown,
    pairing: ops.Pairing = "interleaved",
    stride: ops.Size = 1,
) -> Data:
    """Rotary positions on the last d_rope of every head, forth, or back on what comes out of the values."""
    kept, last = ops.split(x, x.shape[-1] - d_rope, d_rope)
    return ops.join(kept, ops.rope(last, turned, pairing, stride))


def compress(
    c: Any, x: Data, prefix: str, component: str, width: ops.Size, size: ops.Size, *, overlapping: bool
) -> Data:
    """A block of tokens to one vector: a weighted sum, channel by channel.

    `overlapping`: each token counts in two blocks, with a vector for either.
    """
    d = 2 * width if overlapping else width
    values, scores = ops.linear(x, prefix + "wkv", component, d), ops.linear(x, prefix + "wgate", component, d)
    by_position = ops.Weight(prefix + "ape", component, (size, d))
    pool = ops.OverlappingBlocks(size) if overlapping else ops.WeightedBlocks(size)
    blocks = ops.weigh_blocks(values, scores, by_position, width, pool)
    return rope_end(c.norm(blocks, prefix + "norm"), c.d_far_rope, c.far_rope, stride=size)


def index_blocks(c: Any, x: Data, latent: Data, prefix: str) -> Data:
    """The indexer of sparse attention over blocks, with keys of its own, compressed in the same way: [n, n_chosen]."""
    keys = ops.cache(compress(c, x, prefix + "compressor.", "other", c.d_index, c.sparse_block, overlapping=True))
    q = rope_end(ops.linear(latent, prefix + "wq_b", "other", (c.n_index_heads, c.d_index)), c.d_far_rope, c.far_rope)
    of_heads = ops.linear(x, prefix + "weights_proj", "other", c.n_index_heads)
    return ops.choose_blocks(q, keys, of_heads, c.n_chosen, c.sparse_block)


def grouped_output(c: Any, a: Data, prefix: str) -> Data:
    """The heads in groups, each through a matrix of its own, then all together."""
    groups = ops.to_groups(a, c.n_o_groups, c.d_o_group)
    held = ops.Weight(prefix + "wo_a.weight", "output_projection", (c.n_o_groups * c.d_o_lora, c.d_o_group))
    return ops.linear(
        ops.linear_by_head(groups, c.d_o_lora, held, of="group"), prefix + "wo_b", "output_projection", c.d_model
    )


def moe(c: Any, x: Data, prefix: str, tokens: Data | None) -> Data:
    """Experts beside one shared one. `tokens`: where a table of token ids, which is not learned, chooses them."""
    logits = ops.linear(x, prefix + "gate", "router", c.n_routed_experts)  # [n, experts]
    scores = ops.activate(logits, c.scoring)  # [n, experts]
    if tokens is None:
        merit = ops.add_routing_bias(scores, parts.routing_bias(c, prefix + "gate.bias"))
        weights = ops.top_k(scores, c.n_active_experts, merit)  # [n, experts], 0 for those not chosen
    else:
        table = ops.Weight(prefix + "gate.tid2eid", "router", (c.vocab_size, c.n_active_experts), role="buffer")
        chosen = Data(ops.Lookup(), (tokens,), ("tokens", c.n_active_experts), (table,))
        weights = ops.given_experts(scores, chosen)
    weights = ops.scale_by(ops.normalise_weights(weights, least_sum=1e-20), c.routed_scale)
    routed = ops.experts(
        x,
        weights,
        prefix + "experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts,
        lambda x: mlp(c, x, "", "experts"),
    )
    return routed + mlp(c, x, prefix + "shared_experts.", "shared_experts", bias=c.mlp_bias)


def mlp(c: Any, x: Data, prefix: str, component: str, *, bias: bool = False) -> Data:
    names = ("w1", "w3", "w2")
    return parts.gated_mlp(
        x, prefix, component, c.d_expert, bias=bias, activation=c.activation, names=names, limit=c.limit
    )
