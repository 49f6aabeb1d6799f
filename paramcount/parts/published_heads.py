"""Heads that only publishers put on a model's body: reward models, and classes of their own code."""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount import sizes
from paramcount.flow import Data
from paramcount.parts import task_heads as heads
from paramcount.parts.tasks import LABELS, SCORE, TaskHead


def reward_of_tokens(n: int) -> heads.Build:
    """Every token through two matrices. Source: qwen2_rm.py of vLLM."""

    def build(c: Any, x: Data) -> Data:
        h = ops.activate(ops.linear(x, "score.0", "other", c.d_model, bias=True), "relu")
        return ops.linear(h, "score.2", "other", n, bias=True)

    return build


def reward_by_objectives(c: Any, x: Data) -> Data:
    """ArmoRM: the rewards of the last position, weighted by what a network reads at the end of the prompt.

    Source: arXiv:2406.12845, section 2; modeling_custom.py of RLHFlow/ArmoRM-Llama3-8B-v0.1.
    """
    rewards = ops.linear(ops.pool_text(x, "last position"), "regression_layer", "other", c.n_objectives)
    shares = {"other": c.n_objectives}
    (rewards,) = ops.fused(rewards, "reward_transform_matrix", shares, transposed=True, suffixes=("", ""))
    gate = ops.pool_text(x, heads.UNKNOWN)
    for i in c.gate_layers:
        gate = ops.activate(ops.linear(gate, f"gating.layers.{i}", "other", c.d_gate, bias=True), "relu")
    gate = ops.linear(gate, f"gating.layers.{len(c.gate_layers)}", "other", c.n_objectives, bias=True)
    scale = ops.Weight("gating.logit_scale", "other", (1,))
    return Data("sum of the rewards, weighted by the softmax of the gate", (rewards, gate), (1, 1), (scale,))


def count_gate_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("gating_n_hidden", 3)
    if type(n) is not int or n < 0:
        raise sizes.make_value_error(n, "gating_n_hidden", "a non-negative integer")
    return tuple(range(n))


def project_tokens(c: Any, x: Data) -> Data:
    """Every token to a smaller vector. Source: JinaForRanking in jina.py of vLLM."""
    h = ops.activate(ops.linear(x, "projector.0", "other", c.d_projector), "relu")
    return ops.linear(h, "projector.2", "other", c.d_projected)


def relate_words(c: Any, x: Data) -> Data:
    """Whether one entity of a page is the answer to another. Source: arXiv:1812.11275, section 2.2; re.py of
    layoutlmft in microsoft/unilm.
    """
    table, ends = "extractor.entity_emb.weight", list[Data]()
    for end, word in (("head", "question"), ("tail", "answer")):
        labels = Data(ops.Undescribed(f"label of each {word}"), (x,), ("pairs",))
        label = ops.lookup(labels, table, "other_embedding", 3, c.d_model, tied_to=table if ends else None)
        first = Data(ops.Undescribed(f"first word of each {word}"), (x,), ("pairs", c.d_model))
        h = ops.linear(ops.join(first, label), f"extractor.ffnn_{end}.0", "other", c.d_model, bias=True)
        h = ops.linear(ops.activate(h, "relu"), f"extractor.ffnn_{end}.3", "other", c.d_related, bias=True)
        ends.append(ops.activate(h, "relu"))
    weight = ops.Weight("extractor.rel_classifier.bilinear.weight", "other", (2, c.d_related, c.d_related))
    bilinear = Data(ops.Undescribed("bilinear form"), tuple(ends), ("pairs", 2), (weight,))
    return bilinear + ops.linear(ops.join(*ends), "extractor.rel_classifier.linear", "other", 2, bias=True)


V_HEAD = TaskHead(heads.of_last_position(heads.score("v_head", 1, bias=False)), {})
CLASSIFIER_HEAD = TaskHead(heads.of_last_position(heads.score("classifier_head")), LABELS)
OBJECTIVES = TaskHead(
    reward_by_objectives,
    {
        "n_objectives": (sizes.Positive, sizes.hf("num_objectives")),
        "d_gate": (sizes.Positive, sizes.hf("gating_hidden_dim", absent=1024)),
        "gate_layers": (sizes.Indices, sizes.derived(count_gate_layers)),
    },
)
RANKING = TaskHead(
    project_tokens,
    {
        "d_projector": (sizes.Positive, sizes.derived(lambda js, c: c["d_model"] // 2)),
        "d_projected": (sizes.Positive, sizes.derived(lambda js, c: 512)),
    },
)
QWEN2 = {
    "Qwen2ForRewardModel": TaskHead(reward_of_tokens(1), {}, publisher="Qwen/Qwen2.5-Math-RM-72B"),
    "Qwen2ForProcessRewardModel": TaskHead(reward_of_tokens(2), {}, publisher="Qwen/Qwen2.5-Math-PRM-7B"),
}
QWEN3 = {
    "Qwen3ForRewardModel": TaskHead(reward_of_tokens(1), {}, publisher="sgl-project/sglang"),
    "JinaForRanking": RANKING._replace(publisher="jinaai/jina-reranker-v3"),
    "VoyageQwen3BidirectionalEmbedModel": TaskHead(
        heads.score("linear", bias=False), LABELS, publisher="voyageai/voyage-4-nano", is_causal=False
    ),
}
LLAMA = {
    "LlamaForRewardModelWithGating": OBJECTIVES._replace(publisher="RLHFlow/ArmoRM-Llama3-8B-v0.1"),
    "LlamaBidirectionalModel": TaskHead(
        lambda c, x: x, {}, publisher="nvidia/llama-nemotron-embed-1b-v2", is_causal=False
    ),
    "LlamaBidirectionalForSequenceClassification": SCORE._replace(
        publisher="nvidia/llama-nemotron-rerank-1b-v2", is_causal=False
    ),
}
LAYOUTLMV2 = {
    "LayoutLMv2ForRelationExtraction": TaskHead(
        relate_words,
        {"d_related": (sizes.Positive, sizes.derived(lambda js, c: c["d_model"] // 2))},
        publisher="microsoft/unilm",
    )
}
INTERNLM2 = {
    "InternLM2ForRewardModel": V_HEAD._replace(publisher="internlm/internlm2-7b-reward"),
    "InternLM2ForSequenceClassification": SCORE,
}
MINICPM = {
    "MiniCPMForSequenceClassification": SCORE._replace(body=lambda c, tokens: c.transform(c.embed(tokens))),
}
CHATGLM = {"ChatGLMForSequenceClassification": CLASSIFIER_HEAD}
