"""IBM's MLP speculator: a layer for each token that is drafted, which reads the last state and the last token."""

from math import sqrt
from typing import Any

from paramcount.declare import Data, ops, sizes

EPS = 1e-6


def weigh_token(c: Any) -> float:
    """The weight of the token's embedding over that of the state."""
    state = 0.5 ** (0.5 / c.n_predicted)
    return float(sqrt((1 - state**2) * c.d_inner / 2) / state)


def ties_several(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["tied"] and c["n_predicted"] == 1:
        raise sizes.make_value_error(1, "n_predict", "more than 1, because tie_weights = true")


class MlpSpeculator(sizes.Sizes):
    """Each layer has an embedding and an LM head of its own, unless all have the same.

    Source: arXiv:2404.19124, section 3; MLPSpeculator of vLLM, mlp_speculator.py, and its MLPSpeculatorConfig.
    """

    reference = "MLPSpeculatorPreTrainedModel of vllm-project/vllm"
    is_draft = True
    base_model = ""
    conditions = (ties_several,)
    unused_keys = ("top_k_tokens_per_head", "n_candidates", "num_lookahead_tokens")

    vocab_size: sizes.Positive = sizes.hf(absent=32000)
    d_model: sizes.Positive = sizes.hf("emb_dim", "hidden_size", absent=4096)
    d_inner: sizes.Positive = sizes.derived(lambda js, c: js.get("inner_dim", 0) or c["d_model"])
    n_predicted: sizes.Positive = sizes.hf("n_predict", absent=3)
    tied: sizes.Flag = sizes.hf("tie_weights", absent=False)
    scale_input: sizes.Flag = sizes.hf("scale_input", absent=False)
    steps: sizes.Indices = sizes.derived(lambda js, c: tuple(range(c["n_predicted"])))

    token_weight = sizes.setting(default=lambda config, c: weigh_token(c))

    def forward(c, tokens: Data) -> Data:
        """The target's last hidden states, and the tokens behind them, to the logits of every step."""
        x = ops.given("target hidden states", "tokens", c.d_model)
        if c.scale_input:
            x = ops.scale_by(ops.plain_norm(x, "rms", EPS), sqrt(0.5))
        logits = []
        for i in c.steps:
            token = tokens if i == 0 else ops.given(f"drafted tokens {i}", "tokens")
            x = c.step(x, token, i)
            logits.append(ops.linear(x, f"head.{i}", "lm_head", c.vocab_size, tied_to=c.tie(f"head.{i}.weight")))
        return ops.bundle(*logits)

    def step(c, x: Data, token: Data, i: int) -> Data:
        """The state and the token's embedding to the next state."""
        table, projection = f"emb.{i}.weight", f"proj.{i}.weight"
        z = ops.lookup(token, table, "embedding", c.vocab_size, c.d_inner, tied_to=c.tie(table))
        x = ops.linear(x, f"proj.{i}", "mlp", c.d_inner, tied_to=c.tie(projection, 1))
        names = (f"ln.{i}.weight", f"ln.{i}.bias")
        weights = tuple(ops.Weight(name, "norm", (c.d_inner,), tied_to=c.tie(name)) for name in names)
        x = x + ops.scale_by(z, c.token_weight)
        return ops.activate(Data(ops.Norm("rms", EPS), (x,), x.shape, weights), "gelu")

    def tie(c, name: str, first: int = 0) -> str | None:
        """The tensor of a step that all steps behind it share, if they share any."""
        kind, i, end = name.split(".")
        return f"{kind}.{first}.{end}" if c.tied and int(i) > first else None
