"""Qwen 4 (experimental): Qwen3.5's gated delta net and gated attention between several residual streams.

Attention looks at blocks of tokens that an indexer chooses. Some layers add embeddings of n-grams to all streams, from
tables whose sizes are primes.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from paramcount.architectures.qwen3_5 import Qwen35MoE, Qwen35Vision
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value, make_choice_error

LINEAR, INDEXED = "linear_attention", "indexed_attention"
INDEXER = ("indexer_n_heads", "indexer_kv_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio")
WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # which suffice below 3.3 · 10²⁴
MOST_HEADS, LARGEST_TABLE = 4096, 2**62


def read_layer_types(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Full attention is another word for that of chosen blocks, as in the released file."""
    words = js.get("layer_types")
    if words is None:
        period = js.get("full_attention_interval", 4)
        if type(period) is not int or period == 0:
            raise sizes.make_value_error(period, "full_attention_interval", "a positive integer")
        return tuple(LINEAR if (i + 1) % period else INDEXED for i in sizes.per_layer(c))
    return tuple(INDEXED if word == "full_attention" else word for word in words)


def read_ple_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers with embeddings of n-grams, from 0."""
    ids = sorted(set(js.get("ple_layer_ids") or ()))
    for id in ids:
        if type(id) is not int or not 1 <= id <= c["n_layers"]:
            expected = f"layers from 1 to {c['n_layers']}"
            raise ParamcountError(f"contains {describe_value(id)}", where="ple_layer_ids", expected=expected)
        if c["layer_types"][id - 1] != LINEAR:
            raise ParamcountError(
                f"contains {id}, a layer of {c['layer_types'][id - 1]}",
                where="ple_layer_ids",
                expected=f"layers of {LINEAR}",
            )
    if ids and js.get("eos_token_id") in (None, []):
        raise ParamcountError("is missing", where="eos_token_id", expected="a token id, which separates n-grams")
    return tuple(id - 1 for id in ids)


def count_ngram_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The n-gram heads of a layer: so many for each order of n-grams from 2 on."""
    n: int = (c["n_gram"] - 1) * c["heads_per_ngram"]
    if c["ple_layers"] and not 0 < n <= MOST_HEADS:
        raise ParamcountError(f"makes {n:,} n-gram heads", where="ngram_size", expected=f"1 to {MOST_HEADS:,}")
    return n


def ngram_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The size of the embedding of one n-gram head."""
    if not c["ple_layers"]:
        return 0
    n, width = c["n_ngram_heads"], c["d_ple"]
    if width <= 0 or width % n:
        raise ParamcountError(f"= {width} is not a multiple of {n} n-gram heads", where="ple_embed_dim")
    return int(width // n)


def is_prime(n: int) -> bool:
    """Source: Miller and Rabin's test, which is exact below 3.3 · 10²⁴ with these witnesses."""
    if n < 2 or any(n % p == 0 for p in WITNESSES):
        return n in WITNESSES
    twos = ((n - 1) & (1 - n)).bit_length() - 1
    for witness in WITNESSES:
        x = pow(witness, (n - 1) >> twos, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def primes_from(n: int) -> Iterator[int]:
    while True:
        if is_prime(n):
            yield n
        n += 1


def ngram_rows(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The size of each layer's n-gram embedding: a different prime for each head, added up and padded."""
    base, divisor = js.get("ngram_vocab_size_base", 20_000_000), js.get("make_ngram_vocab_size_divisible_by", 128)
    if not c["ple_layers"]:
        return ()
    if type(base) is not int or not 0 <= base <= LARGEST_TABLE or type(divisor) is not int or divisor < 1:
        raise sizes.make_value_error(base, "ngram_vocab_size_base", "a number of rows")
    primes = primes_from(base)
    totals = [sum(next(primes) for _ in range(c["n_ngram_heads"])) for _ in c["ple_layers"]]
    return tuple(-(-total // divisor) * divisor for total in totals)


def indexer_is_whole(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """All sizes of the indexer, or none; its keys have one head."""
    values = {key: js.get(key) for key in INDEXER}
    if all(value is None for value in values.values()):
        if INDEXED in c["layer_types"]:
            raise ParamcountError("is missing", where=INDEXER[0], expected=f"a size, as there are layers of {INDEXED}")
        return
    for key, value in values.items():
        if type(value) is not int or value <= 0 or (key == INDEXER[1] and value != 1):
            expected = "1" if key == INDEXER[1] else "a positive integer"
            raise sizes.make_value_error(value, key, expected)
    if c["index_budget"] % c["index_block"]:
        raise ParamcountError(
            f"= {c['index_budget']} is not a multiple of " + FieldName("index_block") + f" = {c['index_block']}",
            where="indexer_budget",
            expected=f"a multiple of {c['index_block']}",
        )
    if c["d_rope"] > c["d_index"]:
        raise ParamcountError(f"= {c['d_index']} is less than the {c['d_rope']} rotated values", where=INDEXER[2])


def output_gate(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    word = js.get("output_gate_type") or js.get("hidden_act", "silu")
    if word not in ("sigmoid", "silu"):
        raise make_choice_error(word, ["sigmoid", "silu"], where="output_gate_type")


class Qwen4ExpText(Qwen35MoE):
    """Source: modeling_qwen4_exp.py of the reference."""

    reference = "Qwen4ExpForCausalLM"
    model_types = ("qwen4_exp_text",)
    is_section_type = False
    base_model = "Qwen4ExpTextModel"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (*Qwen35MoE.conditions, indexer_is_whole, output_gate)

    layer_types: sizes.Words = sizes.derived(read_layer_types)
    n_active_experts: sizes.Positive = sizes.hf()
    d_expert: sizes.Positive = sizes.hf()
    d_shared_expert: sizes.Positive = sizes.hf("shared_expert_intermediate_size")
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(1.0, key=""))
    n_streams: sizes.Positive = sizes.hf("hc_count")
    d_mix: sizes.Positive = sizes.hf("hc_lowrank")
    d_index: sizes.Natural = sizes.hf("indexer_head_dim", absent=0, null=0)
    n_index_heads: sizes.Natural = sizes.hf("indexer_n_heads", absent=0, null=0)
    index_budget: sizes.Natural = sizes.hf("indexer_budget", absent=0, null=0)
    index_block: sizes.Natural = sizes.hf("indexer_compress_ratio", absent=0, null=0)
    ple_layers: sizes.Indices = sizes.derived(read_ple_layers)
    d_ple: sizes.Natural = sizes.hf("ple_embed_dim", absent=lambda js, c: c["d_model"], null=lambda js, c: c["d_model"])
    d_ple_conv: sizes.Positive = sizes.hf("ple_conv_kernel_size")
    n_gram: sizes.Positive = sizes.hf("ngram_size")
    heads_per_ngram: sizes.Natural = sizes.hf("heads_per_ngram")
    n_ngram_heads: sizes.Natural = sizes.derived(count_ngram_heads)
    d_ngram: sizes.Natural = sizes.derived(ngram_width)
    n_ngram_rows: sizes.Indices = sizes.derived(ngram_rows)
    n_shards: sizes.Positive = sizes.hf("split_ngram_parts")

    rope = sizes.rotary(share=1.0, share_key="")
    index_kv_heads = sizes.setting("indexer_kv_heads", default=None)  # 1 if there is an indexer
    output_gate = sizes.setting("output_gate_type", default=lambda js, c: js.get("hidden_act", "silu"))

    def forward(c, tokens: Data) -> Data:
        return c.head(c.transform(c.embed(tokens), tokens))

    def kinds(c) -> parts.Kinds:
        rows = dict(zip(c.ple_layers, c.n_ngram_rows, strict=True))
        return [((word, rows.get(i)), 1) for i, word in enumerate(c.layer_types)]

    def transform(c, x: Data, *reads: Data) -> Data:
        """Embedded tokens, the same in all streams, through the layers."""
        return super().transform(ops.to_every_stream(x, c.n_streams), *reads)

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, the tokens, and the kind of layer."""
        *places, tokens, (word, rows) = reads
        if rows is not None:
            x = x + c.embed_ngrams(x, tokens, rows)
        if word == LINEAR:
            x = c.connect(
                x, "attn_hyper_connection.", lambda h: parts.gated_delta_net(c, h, "linear_attn.", together=False)
            )
        else:
            x = c.connect(x, "attn_hyper_connection.", lambda h: c.attention(h, "self_attn.", *places))
        return c.connect(x, "mlp_hyper_connection.", lambda h: c.experts(h, "mlp."))

    def connect(c, x: Data, prefix: str, block: Callable[[Data], Data]) -> Data:
        """A block between the streams: what it returns is added to each of them, times a weight."""
        h, mixed = c.mix(x, prefix)
        weights = c.divide(ops.linear(h, prefix + "block_inject_weight", "other", c.n_streams))
        return x + ops.to_streams(block(mixed), ops.scale_by(ops.activate(weights, "sigmoid"), 2.0))

    def mix(c, x: Data, prefix: str) -> tuple[Data, Data]:
        """All streams under one norm each, side by side, and their mean, in which each value has its weight."""
        h = c.norm_streams(x, prefix + "hc_norm")
        weights = ops.activate(c.divide(ops.linear(h, prefix + "input_mix_weight_down", "other", c.d_mix)), "silu")
        weights = ops.linear(weights, prefix + "input_mix_weight_up", "other", c.n_streams * c.d_model)
        return h, ops.mean_of_streams(ops.reshape(h * ops.activate(weights, "sigmoid"), c.n_streams, c.d_model))

    def norm_streams(c, x: Data, name: str) -> Data:
        flat = ops.reshape(x, c.n_streams * c.d_model)
        return ops.rms_norm(flat, name, c.norm_eps, offset=1.0, groups=c.n_streams)

    def divide(c, x: Data) -> Data:
        return ops.scale_by_root(x, c.n_streams * c.n_streams, "divided by the number of streams", inverse=True)

    def last(c, x: Data) -> Data:
        return c.mix(x, c.prefix + "hyper_connection_mixer.")[1]

    def attend(c, x: Data, q: Data, k: Data, v: Data, prefix: str, *places: Data) -> Data:
        chosen = c.choose_blocks(x, prefix + "indexer.", *places)
        return parts.attend_to_chosen(q, ops.cache(k), ops.cache(v), chosen)  # [n, n_heads, d_head]

    def choose_blocks(c, x: Data, prefix: str, *places: Data) -> Data:
        """The tokens of the best blocks, and of the last one while it is incomplete; the mean of its keys, rotated to
        its first token, stands for a block."""
        d_q = c.n_index_heads * c.d_index
        q, keys = ops.split(ops.linear(x, prefix + "index_qk_proj", "other", d_q + c.d_index), d_q, c.d_index)
        q = c.rotate(c.norm(ops.to_heads(q, c.n_index_heads, c.d_index), prefix + "q_layernorm"), *places)
        blocks = c.norm(ops.mean_of_blocks(ops.cache(keys), c.index_block), prefix + "k_layernorm")
        return Data("tokens of the best blocks", (q, blocks), (x.shape[0], c.index_budget + c.index_block - 1))

    def embed_ngrams(c, x: Data, tokens: Data, rows: int) -> Data:
        """What n-grams add to the streams: a value for all, times a gate for each, and a convolution of these."""
        e = c.look_up_ngrams(tokens, rows)
        key = c.norm_streams(ops.linear(e, "ple.key_proj", "other", (c.n_streams, c.d_model)), "ple.norm_key")
        value = ops.linear(e, "ple.value_proj", "other", c.d_model)
        query = c.norm_streams(x, "ple.norm_query")
        gate = Data("signed root of q · k per stream", (query, key), (x.shape[0], c.n_streams))
        gated = ops.to_streams(value, ops.activate(gate, "sigmoid"))
        n = c.n_streams * c.d_model
        h = c.norm_streams(gated, "ple.norm_conv")
        h = ops.elementwise(h, "convolve over distant tokens", "ple.conv1d.weight", "mixer", n, 1, c.d_ple_conv)
        return gated + ops.reshape(ops.activate(h, "silu"), c.n_streams, c.d_model)

    def look_up_ngrams(c, tokens: Data, rows: int) -> Data:
        """Rows of hashed n-grams side by side, of a table that is stored in shards."""
        names, n = "ple.ple_embedding.", c.n_ngram_heads
        size = -(-rows // c.n_shards)
        widths = [min(size, rows - start) for start in range(0, rows, size)]
        shards = tuple(
            ops.Weight(f"{names}ngram_embedding.shard_{i}.weight", "other_embedding", (size, c.d_ngram))
            for i, size in enumerate(widths)
        )
        lengths = {"layer_multipliers": c.n_gram, "ngram_heads_offsets": n, "ngram_heads_vocab_sizes": n}
        hashes = tuple(ops.Weight(names + name, "other", (size,), role="buffer") for name, size in lengths.items())
        return Data("n-gram embedding", (tokens,), (tokens.shape[0], n * c.d_ngram), shards + hashes)

    def unused_fields(c) -> tuple[str, ...]:
        return ()

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", (LINEAR, INDEXED))
        if c.n_streams < 2:
            raise ParamcountError(f"= {c.n_streams}", where=FieldName("n_streams"), expected="at least 2")


Qwen4ExpTextOf = sizes.in_section(Qwen4ExpText, "qwen4_exp.Qwen4ExpForCausalLM")


class Qwen4Exp(parts.PlacedImages):
    """Source: modeling_qwen4_exp.py of the reference."""

    reference = "Qwen4ExpForConditionalGeneration"
    sections = sizes.Sections("qwen4_exp_text", ignores_model_type=True)

    vision: Qwen35Vision

    def marks(c, tokens: Data) -> tuple[Data, ...]:
        return (tokens,)
