"""HRM-Text: a slow and a fast stack of layers run in turn, the fast one several times; each reuses its weights."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName

MOST_PASSES = 256  # each is walked


def cycles(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Which stack works, pass by pass: L_cycles times the fast one, then the slow one once; all that H_cycles times."""
    slow, fast = js.get("H_cycles", 2), js.get("L_cycles", 3)
    for key, n in (("H_cycles", slow), ("L_cycles", fast)):
        if type(n) is not int or not 1 <= n <= MOST_PASSES or slow * (fast + 1) > MOST_PASSES:
            raise sizes.make_value_error(
                n, key, f"a positive integer, with H_cycles × (L_cycles + 1) at most {MOST_PASSES:,}"
            )
    words: tuple[str, ...] = (*["L"] * fast, "H") * slow
    return words


class HrmText(parts.AttentionBias, parts.Decoder):
    """Source: HrmTextModel and HrmTextStack of the reference; arXiv:2506.21734, section 2. `n_layers`: of one stack."""

    reference = "HrmTextForCausalLM"
    is_section_type = True
    modules = {
        ".attn.gqkv_proj": tuple(f".self_attn.{name}_proj" for name in ("gate", "q", "k", "v")),
        ".attn.o_proj": (".self_attn.o_proj",),
        ".mlp.gate_up_proj": (".mlp.gate_proj", ".mlp.up_proj"),
    }
    linear_by_component = False
    rotated = "d_head"
    conditions = (sizes.padding_in_table(None), sizes.not_null("num_hidden_layers"))

    n_layers: sizes.Natural = sizes.hf("num_layers_per_stack", "num_hidden_layers", null=sizes.ABSENT)
    cycles: sizes.Words = sizes.derived(cycles)
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()

    embedding_scale = sizes.setting(
        "embedding_scale", default=lambda config, c: 1 / float(config.get("initializer_range", 0.02))
    )

    def decode(c, high: Data) -> Data:
        low = ops.to_every_token(high, "model.z_L_init", "other")  # not trained
        for i, module in enumerate(c.cycles):
            found = c.stack(high + low, f"model.{module}_module.layers.{{layer}}.", again=module in c.cycles[:i])
            low, high = (found, high) if module == "L" else (low, found)
        return c.head(high)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by(x, c.embedding_scale, "times embedding_scale")

    def stack(c, x: Data, prefix: str, *, again: bool) -> Data:
        """All layers of a module. `again`: with the weights of its first pass."""

        def body(kind: str, x: Data) -> Data:
            return ops.tie_weights(ops.block(x, "", c.layer), prefix) if again else c.layer(x)

        return ops.plain_norm(ops.layers(x, prefix, [("layer", c.n_layers)], body), "rms", c.norm_eps)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(ops.plain_norm(x, "rms", c.norm_eps))
        return x + c.mlp(ops.plain_norm(x, "rms", c.norm_eps))

    def attention(c, x: Data) -> Data:
        """Gated heads. The matrices that read x are stored as one, their biases, if any, one by one."""
        heads = dict.fromkeys(("gate", "q", "k", "v"), (c.n_heads, c.d_head))
        outputs = ops.fused(x, "attn.gqkv_proj", {f"qkv.{name}": width for name, width in heads.items()})
        if c.attention_bias:
            biases = [(f"self_attn.{name}_proj.bias", f"qkv.{name}") for name in heads]
            outputs = tuple(add_bias(y, *names) for y, names in zip(outputs, biases))
        gate, q, k, v = outputs
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v) * ops.activate(gate, "sigmoid")
        return ops.linear(a, "attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias)

    def mlp(c, x: Data) -> Data:
        gate, up = ops.fused(x, "mlp.gate_up_proj", {"mlp.gate": c.d_ff, "mlp.up": c.d_ff})
        if c.mlp_bias:
            gate, up = add_bias(gate, "mlp.gate_proj.bias", "mlp.gate"), add_bias(up, "mlp.up_proj.bias", "mlp.up")
        return ops.linear(
            ops.activate(gate, c.activation) * up, "mlp.down_proj", "mlp.down", c.d_model, bias=c.mlp_bias
        )

    def check(c) -> None:
        if set(c.cycles) != {"L", "H"} or c.cycles[-1] != "H":
            raise sizes.make_value_error(c.cycles, FieldName("cycles"), "L and H, ending with H")
        sizes.check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model


def add_bias(x: Data, name: str, component: str) -> Data:
    return ops.add_vector(x, name, component, ops.last_size(x))
