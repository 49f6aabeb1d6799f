"""Medusa: heads that draft the tokens behind the next one from the target's last hidden state, each on its own."""

from paramcount.declare import Data, ops, sizes


class Medusa(sizes.Sizes):
    """Source: arXiv:2401.10774, section 2.1; Medusa of vLLM, medusa.py, and its MedusaConfig."""

    reference = "MedusaModel of vllm-project/vllm"
    is_draft = True
    base_model = ""
    unused_keys = ("max_paths", "topk", "top_k", "base_model_name_or_path", "max_seq_len", "num_lookahead_tokens")

    vocab_size: sizes.Positive = sizes.hf()
    n_drafted: sizes.Positive = sizes.hf(
        "truncated_vocab_size", absent=sizes.equal_to("vocab_size"), null=sizes.equal_to("vocab_size")
    )
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "medusa_num_layers", absent=1)
    n_medusa_heads: sizes.Positive = sizes.hf("num_heads", "medusa_num_heads", absent=5)
    bias: sizes.Flag = sizes.hf("medusa_fc_bias", absent=False)
    one_lm_head: sizes.Flag = sizes.hf("original_lm_head", absent=False)
    head_indices: sizes.Indices = sizes.derived(lambda js, c: tuple(range(c["n_medusa_heads"])))

    def forward(c, tokens: Data) -> Data:
        """The target's last hidden states to the logits of every head."""
        x = ops.given("target hidden states", "tokens", c.d_model)
        states = [
            ops.layers(x, f"blocks.{i}.layers.{{layer}}", [("layer", c.n_layers)], c.layer) for i in c.head_indices
        ]
        first, *others = [c.head(h, i) for i, h in enumerate(states)]
        return ops.bundle(first, *others) if others else first

    def layer(c, kind: str, x: Data) -> Data:
        return x + ops.activate(ops.linear(x, "", "mlp", c.d_model, bias=c.bias), "silu")

    def head(c, x: Data, i: int) -> Data:
        if not c.one_lm_head:
            return ops.linear(x, f"lm_heads.{i}", "lm_head", c.n_drafted)
        return ops.linear(x, "lm_head", "lm_head", c.n_drafted, tied_to="lm_head.weight" if i else None)

    def check(c) -> None:
        sizes.check_at_most(c, "n_drafted", "vocab_size")
