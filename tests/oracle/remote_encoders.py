"""Encoders that only their authors publish: what their code computes, in plain PyTorch.

The authors' code is not run. Names and order are those of modeling_bert.py of jinaai/jina-bert-implementation and
jinaai/jina-bert-v2-qk-post-norm, of modeling.py of Alibaba-NLP/new-impl, of modeling_hf_nomic_bert.py of
nomic-ai/nomic-bert-2048 and nomic-ai/nomic-embed-text-v2-moe, and of modeling_lora.py of
jinaai/xlm-roberta-flash-implementation.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def make_modules(**modules: nn.Module) -> nn.Module:
    """A module with these inside."""
    found = nn.Module()
    for name, module in modules.items():
        found.add_module(name, module)
    return found


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | float = 0.0) -> Tensor:
    """[n, d] each."""
    q, k, v = (y.view(len(y), heads, -1).transpose(0, 1) for y in (q, k, v))
    weights = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias).softmax(-1)
    return (weights @ v).transpose(0, 1).flatten(1)


def rotate(x: Tensor, heads: int, base: float) -> Tensor:
    y = x.view(len(x), heads, -1)
    d = y.shape[-1]
    angles = torch.outer(torch.arange(len(x)), base ** (-torch.arange(0, d, 2) / d)).repeat(1, 2)[:, None]
    first, second = y.chunk(2, -1)
    return (y * angles.cos() + torch.cat((-second, first), -1) * angles.sin()).flatten(1)


class Norm(nn.LayerNorm):
    def __init__(self, c: Any) -> None:
        super().__init__(c.hidden_size, eps=c.layer_norm_eps)


class JinaLayer(nn.Module):
    def __init__(self, c: Any, index: int, *, normed: bool) -> None:
        super().__init__()
        d, self.c, self.normed = c.hidden_size, c, normed
        matrices = {name: nn.Linear(d, d) for name in ("query", "key", "value")}
        norms = {f"layer_norm_{name}": Norm(c) for name in "qk"} if normed else {}
        output = make_modules(dense=nn.Linear(d, d), LayerNorm=Norm(c))
        self.attention = make_modules(self=make_modules(**matrices, **norms), output=output)
        wide, narrow = nn.Linear(d, 2 * c.intermediate_size, bias=False), nn.Linear(c.intermediate_size, d)
        if normed:
            self.layer_norm_1, self.layer_norm_2 = Norm(c), Norm(c)
            self.mlp = make_modules(up_gated_layer=wide, down_layer=narrow)
        else:
            self.mlp = make_modules(gated_layers=wide, wo=narrow, layernorm=Norm(c))
        self.act = {"geglu": F.gelu, "reglu": F.relu}[c.feed_forward_type]

    def forward(self, x: Tensor) -> Tensor:
        inner, n, heads = self.attention.get_submodule("self"), len(x), self.c.num_attention_heads
        q, k, v = inner.query(x), inner.key(x), inner.value(x)
        if self.normed:
            q, k = inner.layer_norm_q(q), inner.layer_norm_k(k)
        whole = 2 ** (heads.bit_length() - 1)
        slopes = [2 ** (-8 * i / whole) for i in range(1, whole + 1)]
        slopes += [2 ** (-4 * i / whole) for i in range(1, 2 * (heads - whole), 2)]
        distances = (torch.arange(n)[:, None] - torch.arange(n)).abs()
        a = attend(q, k, v, heads, -torch.tensor(slopes)[:, None, None] * distances)
        attended = self.attention.output.LayerNorm(self.attention.output.dense(a) + x)
        if self.normed:
            x = self.layer_norm_1(x + attended)
            up, gate = self.mlp.up_gated_layer(x).chunk(2, -1)
            return self.layer_norm_2(x + self.mlp.down_layer(up * self.act(gate)))
        gate, up = self.mlp.gated_layers(attended).chunk(2, -1)
        return self.mlp.layernorm(self.mlp.wo(self.act(gate) * up) + attended)


class NewLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c = c.hidden_size, c
        self.attention = make_modules(qkv_proj=nn.Linear(d, 3 * d), o_proj=nn.Linear(d, d))
        wide = nn.Linear(d, 2 * c.intermediate_size, bias=False)
        self.mlp = make_modules(up_gate_proj=wide, down_proj=nn.Linear(c.intermediate_size, d))
        self.attn_ln, self.mlp_ln = Norm(c), Norm(c)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attention.qkv_proj(x).chunk(3, -1)
        heads, base = self.c.num_attention_heads, self.c.rope_theta
        x = self.attn_ln(x + self.attention.o_proj(attend(rotate(q, heads, base), rotate(k, heads, base), v, heads)))
        up, gate = self.mlp.up_gate_proj(x).chunk(2, -1)
        return self.mlp_ln(x + self.mlp.down_proj(F.gelu(gate) * up))


class NomicLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c = c.hidden_size, c
        matrices = {
            "Wqkv": nn.Linear(d, 3 * d, bias=c.qkv_proj_bias),
            "out_proj": nn.Linear(d, d, bias=c.qkv_proj_bias),
        }
        self.attn, self.norm1, self.norm2 = make_modules(**matrices), Norm(c), Norm(c)
        width, kind = c.n_inner, c.activation_function
        every = getattr(c, "moe_every_n_layers", 0)
        self.is_moe, self.is_gated = every > 0 and index % every == 1, kind in ("swiglu", "geglu", "glu")
        self.act = {"swiglu": F.silu, "geglu": F.gelu, "glu": torch.sigmoid, "gelu": F.gelu}[kind]
        if self.is_moe:
            self.mlp = make_modules(router=make_modules(layer=nn.Linear(d, c.num_experts, bias=False)))
            self.mlp.experts = make_modules(mlp=nn.Module())
            self.mlp.experts.bias = nn.Parameter(torch.zeros(d))
            for name in ("w1", "w2"):
                self.mlp.experts.mlp.register_parameter(name, nn.Parameter(torch.zeros(c.num_experts * width, d)))
            return
        if self.is_gated:
            width = (width + 255) // 256 * 256
        names = ("fc11", "fc12") if self.is_gated else ("fc1",)
        wide = {name: nn.Linear(d, width, bias=c.mlp_fc1_bias) for name in names}
        self.mlp = make_modules(**wide, fc2=nn.Linear(width, d, bias=c.mlp_fc2_bias))

    def run_mlp(self, x: Tensor) -> Tensor:
        if self.is_moe:
            weights, chosen = self.mlp.router.layer(x).softmax(-1).topk(self.c.moe_top_k, -1)
            y = torch.zeros_like(x)
            n = self.c.num_experts
            for i, (w1, w2) in enumerate(zip(self.mlp.experts.mlp.w1.chunk(n), self.mlp.experts.mlp.w2.chunk(n))):
                y = y + self.act(x @ w1.T) @ w2 * (weights * (chosen == i)).sum(-1, keepdim=True)
            return y + self.mlp.experts.bias
        if self.is_gated:
            return self.mlp.fc2(self.mlp.fc11(x) * self.act(self.mlp.fc12(x)))
        return self.mlp.fc2(self.act(self.mlp.fc1(x)))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attn.Wqkv(x).chunk(3, -1)
        heads, base = self.c.num_attention_heads, self.c.rotary_emb_base
        a = attend(rotate(q, heads, base), rotate(k, heads, base), v, heads)
        x = self.norm1(self.attn.out_proj(a) + x)
        return self.norm2(self.run_mlp(x) + x)


class Factors(nn.Module):
    """Of the updates of all tasks, which nothing reads without a task."""

    def __init__(self, first: tuple[int, ...], second: tuple[int, ...]) -> None:
        super().__init__()
        self.lora_A, self.lora_B = nn.Parameter(torch.zeros(first)), nn.Parameter(torch.zeros(second))


def add_updates(module: nn.Module, n_tasks: int, rank: int) -> None:
    """What a parametrization of the weight of each matrix and table leaves behind."""
    for inner in [one for one in module.modules() if isinstance(one, nn.Linear | nn.Embedding)]:
        matrix = inner._parameters.pop("weight")
        rows, columns = matrix.shape
        factors = ((rank, columns), (rows, rank))
        if isinstance(inner, nn.Embedding):
            factors = ((rows, rank), (rank, columns))
        weight = make_modules(**{"0": Factors((n_tasks, *factors[0]), (n_tasks, *factors[1]))})
        weight.original = matrix
        inner.parametrizations = make_modules(weight=weight)
        object.__setattr__(inner, "weight", matrix)  # what is computed with, under no name of its own


class FlashLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c = c.hidden_size, c
        self.mixer = make_modules(Wqkv=nn.Linear(d, 3 * d), out_proj=nn.Linear(d, d))
        self.mlp = make_modules(fc1=nn.Linear(d, c.intermediate_size), fc2=nn.Linear(c.intermediate_size, d))
        self.norm1, self.norm2 = Norm(c), Norm(c)

    def forward(self, x: Tensor) -> Tensor:
        heads, base = self.c.num_attention_heads, self.c.rotary_emb_base
        q, k, v = self.mixer.Wqkv(x).chunk(3, -1)
        a = attend(rotate(q, heads, base), rotate(k, heads, base), v, heads)
        x = self.norm1(x + self.mixer.out_proj(a))
        return self.norm2(x + self.mlp.fc2(F.gelu(self.mlp.fc1(x))))


class Flash(nn.Module):
    base_model_prefix = "-"

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.roberta = Body(c, FlashLayer, layers="layers", norm="emb_ln", pooled=True)
        self.n_tasks = len(getattr(c, "lora_adaptations", ()))
        if self.n_tasks:
            add_updates(self.roberta, self.n_tasks, c.lora_rank)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> dict[str, Tensor]:
        return {"logits": self.roberta(input_ids, token_type_ids)[None]}


class Body(nn.Module):
    """Tables, their norm, layers, and a pooler for some classes."""

    def __init__(self, c: Any, layer: Any, *, layers: str, norm: str, pooled: bool) -> None:
        super().__init__()
        self.layers, self.norm = f"encoder.{layers}", norm
        self.embeddings = make_modules(word_embeddings=nn.Embedding(c.vocab_size, c.hidden_size))
        if getattr(c, "position_embedding_type", "alibi") == "absolute":
            self.embeddings.position_embeddings = nn.Embedding(c.max_position_embeddings, c.hidden_size)
        if c.type_vocab_size > 0:
            self.embeddings.token_type_embeddings = nn.Embedding(c.type_vocab_size, c.hidden_size)
        self.get_submodule(norm.rpartition(".")[0]).add_module(norm.rpartition(".")[2], Norm(c))
        self.encoder = make_modules(**{layers: nn.ModuleList(layer(c, i) for i in range(c.num_hidden_layers))})
        self.is_pooled = pooled
        if pooled:
            self.pooler = make_modules(dense=nn.Linear(c.hidden_size, c.hidden_size))

    def forward(self, tokens: Tensor, segments: Tensor | None) -> Tensor:
        x = self.embeddings.word_embeddings(tokens[0])
        if hasattr(self.embeddings, "token_type_embeddings"):
            kinds = torch.zeros_like(tokens[0]) if segments is None else segments[0]
            x = x + self.embeddings.token_type_embeddings(kinds)
        if hasattr(self.embeddings, "position_embeddings"):
            x = x + self.embeddings.position_embeddings(torch.arange(len(x)))
        x = self.get_submodule(self.norm)(x)
        for layer in self.get_submodule(self.layers):
            x = layer(x)
        return x

    def pool(self, x: Tensor) -> Tensor:
        return torch.tanh(self.pooler.dense(x[:1]))


class MaskedModel(nn.Module):
    """`names`: of the body, and of matrix, norm and decoder of the head."""

    base_model_prefix = "bert"

    def __init__(
        self, c: Any, body: Body, names: tuple[str, str, str, str], *, bias: bool = True, act: Any = F.gelu
    ) -> None:
        super().__init__()
        self.names, self.act = names, act
        self.add_module(names[0], body)
        d, decoder = c.hidden_size, nn.Linear(c.hidden_size, c.vocab_size, bias=bias)
        parts = (nn.Linear(d, d, bias=bias), Norm(c), decoder)
        for name, part in zip(names[1:], parts):
            place: nn.Module = self
            for step in name.split(".")[:-1]:
                if not hasattr(place, step):
                    place.add_module(step, nn.Module())
                place = getattr(place, step)
            place.add_module(name.rpartition(".")[2], part)
        decoder.weight = body.embeddings.word_embeddings.weight
        if names[2].startswith("cls") and "LayerNorm" in names[2]:  # BERT's head has its bias twice
            self.cls.predictions.bias = decoder.bias

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> dict[str, Tensor]:
        body, dense, norm, decoder = (self.get_submodule(name) for name in self.names)
        return {"logits": decoder(norm(self.act(dense(body(input_ids, token_type_ids)))))[None]}


class HeadedModel(nn.Module):
    """A body with one matrix named `head`."""

    base_model_prefix = "bert"

    def __init__(self, body: Body, name: str, head: str, n: int, *, pooled: bool) -> None:
        super().__init__()
        self.name, self.head, self.pooled = name, head, pooled
        self.add_module(name, body)
        self.add_module(head, nn.Linear(body.embeddings.word_embeddings.embedding_dim, n))

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> dict[str, Tensor]:
        body = self.get_submodule(self.name)
        x = body(input_ids, token_type_ids)
        return {"logits": self.get_submodule(self.head)(body.pool(x) if self.pooled else x)[None]}


def build_jina(c: Any) -> nn.Module:
    normed, cls = "qk-post-norm" in c.auto_map["AutoModel"], c.architectures[0]
    pooled = cls.endswith(("Model", "ForSequenceClassification", "ForMultipleChoice"))

    def layer(c: Any, index: int) -> JinaLayer:
        return JinaLayer(c, index, normed=normed)

    body = Body(c, layer, layers="layer", norm="embeddings.LayerNorm", pooled=pooled)
    names = ("bert", *(f"cls.predictions.{name}" for name in ("transform.dense", "transform.LayerNorm", "decoder")))
    return add_head(c, body, "bert", names)


def build_new(c: Any) -> nn.Module:
    pooled = c.architectures[0].endswith(("ForSequenceClassification", "ForMultipleChoice"))
    body = Body(c, NewLayer, layers="layer", norm="embeddings.LayerNorm", pooled=pooled)
    return add_head(c, body, "new", ("new", "lm_head.dense", "lm_head.norm", "lm_head.decoder"))


def build_nomic(c: Any) -> nn.Module:
    c.hidden_size, c.num_attention_heads, c.num_hidden_layers = c.n_embd, c.n_head, c.n_layer
    c.layer_norm_eps = c.layer_norm_epsilon
    c.vocab_size += -c.vocab_size % c.pad_vocab_size_multiple
    pooled = c.architectures[0].endswith("ForSequenceClassification")
    body = Body(c, NomicLayer, layers="layers", norm="emb_ln", pooled=pooled)
    names = ("bert", *(f"cls.predictions.{name}" for name in ("transform.dense", "transform.layer_norm", "decoder")))
    act = F.silu if c.activation_function == "swiglu" else F.gelu
    return add_head(c, body, "bert", names, bias=c.mlp_fc1_bias, act=act)


def add_head(c: Any, body: Body, name: str, names: tuple[str, ...], **options: Any) -> nn.Module:
    """The class that `architectures` names."""
    cls, n = c.architectures[0], getattr(c, "num_labels", 2)
    if cls.endswith(("ForMaskedLM", "ForPreTraining")):
        return MaskedModel(c, body, (names[0], names[1], names[2], names[3]), **options)
    if cls.endswith("ForQuestionAnswering"):
        return HeadedModel(body, name, "qa_outputs", n, pooled=False)
    return HeadedModel(body, name, "classifier", 1 if cls.endswith("ForMultipleChoice") else n, pooled=body.is_pooled)


def build(document: dict[str, Any]) -> nn.Module:
    return BUILDERS[document["model_type"]](SimpleNamespace(**document)).eval()


BUILDERS = {"xlm-roberta": Flash, "bert": build_jina, "new": build_new, "nomic_bert": build_nomic}
SIZES = {
    "vocab_size": 96, "hidden_size": 36, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 44,
    "max_position_embeddings": 64, "type_vocab_size": 3, "layer_norm_eps": 0.01, "pad_token_id": 0,
}  # fmt: skip
JINA = {
    **SIZES, "model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "feed_forward_type": "geglu",
    "position_embedding_type": "alibi", "auto_map": {"AutoModel": "jinaai/jina-bert-implementation--modeling_bert.X"},
}  # fmt: skip
NORMED = {"auto_map": {"AutoModel": "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.X"}}
NEW = {
    **SIZES, "model_type": "new", "architectures": ["NewForMaskedLM"], "rope_theta": 300.0, "pack_qkv": True,
    "position_embedding_type": "rope", "hidden_act": "gelu",
}  # fmt: skip
NOMIC = {
    "model_type": "nomic_bert", "architectures": ["NomicBertForPreTraining"], "activation_function": "swiglu",
    "vocab_size": 90, "pad_vocab_size_multiple": 8, "n_embd": 36, "n_layer": 3, "n_head": 6, "n_inner": 270,
    "layer_norm_epsilon": 0.01, "type_vocab_size": 2, "qkv_proj_bias": False, "mlp_fc1_bias": False,
    "mlp_fc2_bias": False, "rotary_emb_fraction": 1.0, "rotary_emb_base": 300.0, "n_positions": 64,
    "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
}  # fmt: skip
BIASED = {
    "activation_function": "gelu", "n_inner": 44, "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True,
    "type_vocab_size": 0,
}  # fmt: skip
EXPERTS = {**BIASED, "moe_every_n_layers": 2, "num_experts": 6, "moe_top_k": 2, "n_layer": 4}
FLASH = {
    **SIZES, "model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "position_embedding_type": "rotary",
    "rotary_emb_base": 300.0, "pad_token_id": 1, "auto_map": {"AutoModel": "x/xlm-roberta-flash-implementation--m.M"},
}  # fmt: skip
UPDATED = {
    **FLASH, "lora_adaptations": ["search", "sort"], "lora_rank": 5,
    "auto_map": {"AutoModel": "jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA"},
}  # fmt: skip
# {model type, what is special: config.json}
MODELS: dict[str, dict[str, Any]] = {
    "jina_bert": JINA,
    "jina_bert, rectified": {**JINA, "feed_forward_type": "reglu"},
    "jina_bert, positions": {**JINA, "position_embedding_type": "absolute"},
    "jina_bert, normed": {**JINA, **NORMED},
    "jina_bert, normed and rectified": {**JINA, **NORMED, "feed_forward_type": "reglu"},
    "new": NEW,
    "new, no segments": {**NEW, "type_vocab_size": 0},
    "hf_nomic_bert": NOMIC,
    "hf_nomic_bert, gated by GELU": {**NOMIC, "activation_function": "geglu"},
    "hf_nomic_bert, biased": {**NOMIC, **BIASED},
    "hf_nomic_bert, experts": {**NOMIC, **EXPERTS},
    "xlm_roberta_flash": FLASH,
    "xlm_roberta_flash, updated": UPDATED,
}
HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
HEADED: dict[str, dict[str, Any]] = {
    f"{name}, {beginning}{ending}": {**document, "architectures": [beginning + ending]}
    for name, document, beginning, endings in (
        ("jina_bert", JINA, "JinaBert", HEADS),
        ("jina_bert, normed", {**JINA, **NORMED}, "JinaBert", HEADS),
        ("new", NEW, "New", HEADS),
        ("hf_nomic_bert", NOMIC, "NomicBert", HEADS[:1]),
    )
    for ending in endings
}
