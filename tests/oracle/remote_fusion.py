"""The text encoders of ALBEF and BLIP: what xbert.py of salesforce/ALBEF and med.py of salesforce/BLIP compute, in
plain PyTorch. The authors' code is not run.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle.remote_encoders import attend, make_modules


class Attention(nn.Module):
    """Post-norm attention to x, or to an image whose vectors have another size."""

    def __init__(self, c: Any, width: int) -> None:
        super().__init__()
        d, self.heads = c.hidden_size, c.num_attention_heads
        self.self = make_modules(query=nn.Linear(d, d), key=nn.Linear(width, d), value=nn.Linear(width, d))
        self.output = make_modules(dense=nn.Linear(d, d), LayerNorm=nn.LayerNorm(d, eps=c.layer_norm_eps))

    def forward(self, x: Tensor, source: Tensor, bias: Tensor | float = 0.0) -> Tensor:
        a = attend(self.self.query(x), self.self.key(source), self.self.value(source), self.heads, bias)
        return self.output.LayerNorm(x + self.output.dense(a))


class Layer(nn.Module):
    def __init__(self, c: Any, *, is_fused: bool) -> None:
        super().__init__()
        d, ff = c.hidden_size, c.intermediate_size
        self.attention = Attention(c, d)
        if is_fused:
            self.crossattention = Attention(c, c.encoder_width)
        self.intermediate = make_modules(dense=nn.Linear(d, ff))
        self.output = make_modules(dense=nn.Linear(ff, d), LayerNorm=nn.LayerNorm(d, eps=c.layer_norm_eps))

    def forward(self, x: Tensor, image: Tensor | None, bias: Tensor | float) -> Tensor:
        x = self.attention(x, x, bias)
        if hasattr(self, "crossattention"):
            assert image is not None
            x = self.crossattention(x, image)
        return self.output.LayerNorm(x + self.output.dense(F.gelu(self.intermediate.dense(x))))


class Bert(nn.Module):
    base_model_prefix = "bert"

    def __init__(self, c: Any) -> None:
        super().__init__()
        d, n, self.is_causal = c.hidden_size, c.num_hidden_layers, c.architectures[0] == "BertLMHeadModel"
        self.is_albef = hasattr(c, "fusion_layer")
        first = c.fusion_layer if self.is_albef else 0 if c.add_cross_attention else n
        segments = {"token_type_embeddings": nn.Embedding(c.type_vocab_size, d)} if self.is_albef else {}
        self.bert = make_modules(
            embeddings=make_modules(
                word_embeddings=nn.Embedding(c.vocab_size, d),
                position_embeddings=nn.Embedding(c.max_position_embeddings, d),
                **segments,
                LayerNorm=nn.LayerNorm(d, eps=c.layer_norm_eps),
            ),
            encoder=make_modules(layer=nn.ModuleList(Layer(c, is_fused=i >= first) for i in range(n))),
        )
        self.has_head = c.architectures[0] != "BertModel"
        if not self.has_head:
            self.bert.add_module("pooler", make_modules(dense=nn.Linear(d, d)))
            return
        transform = make_modules(dense=nn.Linear(d, d), LayerNorm=nn.LayerNorm(d, eps=c.layer_norm_eps))
        self.cls = make_modules(predictions=make_modules(transform=transform))
        self.cls.predictions.bias = nn.Parameter(torch.zeros(c.vocab_size))

    def forward(
        self, input_ids: Tensor, encoder_hidden_states: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> dict[str, Tensor]:
        tables, ids = self.bert.embeddings, input_ids[0]
        x = tables.word_embeddings(ids) + tables.position_embeddings.weight[: len(ids)]
        if self.is_albef:
            x = x + tables.token_type_embeddings(0 * ids if token_type_ids is None else token_type_ids[0])
        x = tables.LayerNorm(x)
        bias = torch.full((len(ids), len(ids)), -1e9).triu(1) if self.is_causal else 0.0
        for layer in self.bert.encoder.layer:
            x = layer(x, None if encoder_hidden_states is None else encoder_hidden_states[0], bias)
        if not self.has_head:
            return {"last_hidden_state": x[None]}
        head = self.cls.predictions
        h = head.transform.LayerNorm(F.gelu(head.transform.dense(x)))
        return {"logits": (h @ tables.word_embeddings.weight.T + head.bias)[None]}


def build(document: dict[str, Any]) -> nn.Module:
    return Bert(SimpleNamespace(**document)).eval()


SMALL = {
    "model_type": "bert", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 44, "max_position_embeddings": 64, "type_vocab_size": 2, "layer_norm_eps": 0.01,
    "hidden_act": "gelu", "pad_token_id": 0, "encoder_width": 20,
}  # fmt: skip
ALBEF = {**SMALL, "fusion_layer": 1, "architectures": ["BertForMaskedLM"]}
BLIP = {**SMALL, "add_cross_attention": True, "architectures": ["BertLMHeadModel"]}
# {model type, what is special: its config.json}
MODELS: dict[str, dict[str, Any]] = {
    "albef_bert": ALBEF,
    "albef_bert, a decoder": {**ALBEF, "architectures": ["BertLMHeadModel"]},
    "albef_bert, every layer fused": {**ALBEF, "fusion_layer": 0},
    "albef_bert, no layer fused": {**ALBEF, "fusion_layer": 3},
    "albef_bert, without a head": {**ALBEF, "architectures": ["BertModel"]},
    "blip_bert": BLIP,
    "blip_bert, without an image": {**BLIP, "add_cross_attention": False},
    "blip_bert, without a head": {**BLIP, "architectures": ["BertModel"]},
}
HEADED: dict[str, dict[str, Any]] = {}
