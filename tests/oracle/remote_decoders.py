"""Decoders that only their authors publish: what their code computes, in plain PyTorch without a cache.

The authors' code is not run. Names and order are those of olmo/model.py of github allenai/OLMo, modeling_moss.py of
github OpenMOSS/MOSS, modeling_mixformer_sequential.py of microsoft/phi-1_5, phi3_small.py of SGLang with the limit of
the authors' MLP, megatron/model/yuan_hf_model.py of github IEIT-Yuan/Yuan-2.0 and openpangu.py of vLLM.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle.remote import Gated, RMSNorm
from tests.oracle.remote_encoders import make_modules


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """[n, heads, d] each, no token sees later ones: [n, heads · d]."""
    q, k, v = (y.transpose(0, 1) for y in (q, k, v))
    k, v = (y.repeat_interleave(len(q) // len(y), 0) for y in (k, v))
    scores = q @ k.transpose(1, 2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores.masked_fill(torch.ones_like(scores[0]).triu(1).bool(), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)


def rotate(x: Tensor, base: float, d: int | None = None, *, pairs: bool = False) -> Tensor:
    """The first d values of each head, in halves or in neighbouring pairs."""
    d = x.shape[-1] if d is None else d
    angles = torch.outer(torch.arange(len(x)), base ** (-torch.arange(0, d, 2) / d))[:, None]
    y, rest = x[..., :d], x[..., d:]
    first, second = (y[..., ::2], y[..., 1::2]) if pairs else y.chunk(2, -1)
    turned = (first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos())
    y = torch.stack(turned, -1).flatten(-2) if pairs else torch.cat(turned, -1)
    return torch.cat((y, rest), -1)


class PlainNorm(nn.Module):
    """With a weight and a bias or without, of either kind."""

    def __init__(self, c: Any, width: int, *, affine: bool) -> None:
        super().__init__()
        self.kind, self.eps, self.weight, self.bias = c.layer_norm_type, c.layer_norm_eps, None, None
        has_bias = c.include_bias if c.bias_for_layer_norm is None else c.bias_for_layer_norm
        if affine:
            self.weight = nn.Parameter(torch.ones(width))
            self.bias = nn.Parameter(torch.zeros(width)) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "rms":
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        else:
            x = F.layer_norm(x, x.shape[-1:], eps=self.eps)
        x = x if self.weight is None else x * self.weight
        return x if self.bias is None else x + self.bias


class OlmoBlock(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c, self.d = c.d_model, c, c.d_model // c.n_heads
        self.kv = c.n_kv_heads or (1 if c.multi_query_attention else c.n_heads)
        if c.attention_layer_norm:
            self.k_norm, self.q_norm = PlainNorm(c, self.kv * self.d, affine=True), PlainNorm(c, d, affine=True)
        width = c.mlp_ratio * d if c.mlp_hidden_size is None else c.mlp_hidden_size
        inner = width // 2 if c.activation_type == "swiglu" else width
        self.attn_out, self.ff_out = nn.Linear(d, d, bias=c.include_bias), nn.Linear(inner, d, bias=c.include_bias)
        self.att_proj = nn.Linear(d, d + 2 * self.kv * self.d, bias=c.include_bias)
        self.ff_proj = nn.Linear(d, width, bias=c.include_bias)
        self.attn_norm, self.ff_norm = (PlainNorm(c, d, affine=c.layer_norm_with_affine) for _ in range(2))

    def attend(self, x: Tensor) -> Tensor:
        c, y = self.c, self.att_proj(x)
        if c.clip_qkv is not None:
            y = y.clamp(-c.clip_qkv, c.clip_qkv)
        q, k, v = y.split([c.d_model, self.kv * self.d, self.kv * self.d], -1)
        if c.attention_layer_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (y.view(len(x), -1, self.d) for y in (q, k, v))
        if c.rope:
            q, k = rotate(q, c.rope_theta), rotate(k, c.rope_theta)
        return self.attn_out(attend(q, k, v))

    def run_mlp(self, x: Tensor) -> Tensor:
        h, kind = self.ff_proj(x), self.c.activation_type
        if kind == "swiglu":
            up, gate = h.chunk(2, -1)
            return self.ff_out(F.silu(gate) * up)
        return self.ff_out({"gelu": F.gelu, "relu": F.relu}[kind](h))

    def forward(self, x: Tensor) -> Tensor:
        if self.c.norm_after:
            x = x + self.attn_norm(self.attend(x))
            return x + self.ff_norm(self.run_mlp(x))
        x = x + self.attend(self.attn_norm(x))
        return x + self.run_mlp(self.ff_norm(x))


class Olmo(nn.Module):
    base_model_prefix = "-"

    def __init__(self, c: Any) -> None:
        super().__init__()
        rows = c.embedding_size or c.vocab_size
        self.scope = make_modules(wte=nn.Embedding(rows, c.d_model))
        self.model = make_modules(transformer=self.scope)
        del self._modules["scope"]
        inner = self.model.transformer
        inner.ln_f = PlainNorm(c, c.d_model, affine=c.layer_norm_with_affine)
        inner.blocks = nn.ModuleList(OlmoBlock(c, i) for i in range(c.n_layers))
        if not c.rope:
            inner.wpe = nn.Embedding(c.max_sequence_length, c.d_model)
        if not c.weight_tying:
            inner.ff_out = nn.Linear(c.d_model, rows, bias=c.include_bias)
        if c.embedding_layer_norm:
            inner.emb_norm = PlainNorm(c, c.d_model, affine=c.layer_norm_with_affine)

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        inner = self.model.transformer
        x = inner.wte(input_ids[0])
        if hasattr(inner, "emb_norm"):
            x = inner.emb_norm(x)
        if hasattr(inner, "wpe"):
            x = x + inner.wpe.weight[: len(x)]
        for block in inner.blocks:
            x = block(x)
        x = inner.ln_f(x)
        return {"logits": (inner.ff_out(x) if hasattr(inner, "ff_out") else x @ inner.wte.weight.T)[None]}


class MossBlock(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c = c.n_embd, c
        width = 4 * d if c.n_inner is None else c.n_inner
        self.ln_1 = nn.LayerNorm(d, eps=c.layer_norm_epsilon)
        self.attn = make_modules(qkv_proj=nn.Linear(d, 3 * d, bias=False), out_proj=nn.Linear(d, d, bias=False))
        self.mlp = make_modules(fc_in=nn.Linear(d, width), fc_out=nn.Linear(width, d))

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.ln_1(x), self.c
        y = self.attn.qkv_proj(h).view(len(x), 4, 3, c.n_head // 4, c.n_embd // c.n_head)  # of each of four devices
        q, v, k = (y[:, :, i].flatten(1, 2) for i in range(3))
        a = attend(rotate(q, 10_000, c.rotary_dim, pairs=True), rotate(k, 10_000, c.rotary_dim, pairs=True), v)
        return x + self.attn.out_proj(a) + self.mlp.fc_out(F.gelu(self.mlp.fc_in(h), approximate="tanh"))


class MixFormerBlock(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c = c.n_embd, c
        width = 4 * d if c.n_inner is None else c.n_inner
        self.ln = nn.LayerNorm(d, eps=c.layer_norm_epsilon)
        self.mixer = make_modules(Wqkv=nn.Linear(d, 3 * d), out_proj=nn.Linear(d, d))
        self.mlp = make_modules(fc1=nn.Linear(d, width), fc2=nn.Linear(width, d))
        if c.architecture["mlp"]["mlp_cls"] == "fused_mlp":
            self.mlp = make_modules(mlp=self.mlp)

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.ln(x), self.c
        q, k, v = (y.view(len(x), c.n_head, -1) for y in self.mixer.Wqkv(h).chunk(3, -1))
        a = self.mixer.out_proj(attend(rotate(q, 10_000, c.rotary_dim), rotate(k, 10_000, c.rotary_dim), v))
        mlp = self.mlp if hasattr(self.mlp, "fc1") else self.mlp.mlp
        return x + a + mlp.fc2(F.gelu(mlp.fc1(h), approximate="tanh"))


class MixFormer(nn.Module):
    base_model_prefix = "-"

    def __init__(self, c: Any) -> None:
        super().__init__()
        norm, linear = nn.LayerNorm(c.n_embd, eps=c.layer_norm_epsilon), nn.Linear(c.n_embd, c.vocab_size)
        blocks = [MixFormerBlock(c, i) for i in range(c.n_layer)]
        first, last = make_modules(wte=nn.Embedding(c.vocab_size, c.n_embd)), make_modules(ln=norm, linear=linear)
        self.layers = nn.ModuleList([first, *blocks, last])

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.layers[0].wte(input_ids[0])
        for block in self.layers[1:-1]:
            x = block(x)
        return {"logits": self.layers[-1].linear(self.layers[-1].ln(x))[None]}


class Phi3SmallLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c, self.d = c.hidden_size, c, c.hidden_size // c.num_attention_heads
        wide = nn.Linear(d, d + 2 * c.num_key_value_heads * self.d)
        self.self_attn = make_modules(query_key_value=wide, dense=nn.Linear(d, d))
        up, down = nn.Linear(d, 2 * c.ff_intermediate_size), nn.Linear(c.ff_intermediate_size, d)
        self.mlp = make_modules(up_proj=up, down_proj=down)
        self.input_layernorm = nn.LayerNorm(d, eps=c.layer_norm_epsilon)
        self.post_attention_layernorm = nn.LayerNorm(d, eps=c.layer_norm_epsilon)

    def forward(self, x: Tensor) -> Tensor:
        c, n, kv = self.c, len(x), self.c.num_key_value_heads
        y = self.self_attn.query_key_value(self.input_layernorm(x)).view(n, kv, -1, self.d)
        q, k, v = y[:, :, :-2].flatten(1, 2), y[:, :, -2], y[:, :, -1]
        scale = c.mup_attn_multiplier / self.d if c.mup_use_scaling else self.d**-0.5
        base = c.rope_embedding_base
        x = x + self.self_attn.dense(attend(rotate(q, base), rotate(k, base), v, scale))
        y = self.mlp.up_proj(self.post_attention_layernorm(x))
        gate, up = y[:, ::2].clamp(max=c.gegelu_limit), y[:, 1::2].clamp(-c.gegelu_limit, c.gegelu_limit)
        return x + self.mlp.down_proj(gate * torch.sigmoid(1.702 * gate) * (up + 1))


class YuanLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, names = c.hidden_size, ("up_proj", "gate_proj", "down_proj")
        convolutions = {"conv1": nn.Conv2d(d, d // 2, (2, 1)), "conv2": nn.Conv2d(d // 2, d, (2, 1))}
        gate = make_modules(**convolutions, output_layernorm=RMSNorm(d, 1e-6))
        matrices = {f"{name}_proj": nn.Linear(d, d, bias=False) for name in "qkvo"}
        self.self_attn, self.mlp = make_modules(lf_gate=gate, **matrices), Gated(d, c.intermediate_size, names, F.silu)
        self.input_layernorm, self.post_attention_layernorm = (RMSNorm(d, c.rms_norm_eps) for _ in range(2))


class PanguLayer(nn.Module):
    """Of the dense model, or of the one with experts and latent attention."""

    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c, names = c.hidden_size, c, ("gate_proj", "up_proj", "down_proj")
        self.is_latent, self.is_moe = (
            hasattr(c, "kv_lora_rank"),
            index >= getattr(c, "first_k_dense_replace", index + 1),
        )
        self.self_attn = self.make_latent(c) if self.is_latent else self.make_heads(c)
        self.mlp: nn.Module = Gated(d, c.intermediate_size, names, F.silu)
        if self.is_moe:
            n, width = c.n_routed_experts, c.moe_intermediate_size
            experts = nn.ModuleList(Gated(d, width, names, F.silu) for _ in range(n))
            self.mlp = make_modules(gate=nn.Linear(d, n, bias=False), experts=experts)
            if c.router_enable_expert_bias:
                self.mlp.gate.e_score_correction_bias = nn.Parameter(torch.zeros(n))
            if c.n_shared_experts is not None:
                self.mlp.shared_experts = Gated(d, width * c.n_shared_experts, names, F.silu)
        sandwich = getattr(c, "sandwich_norm", False)
        self.norms = ["input_layernorm", "post_attention_layernorm"]
        self.norms += ["pre_mlp_layernorm", "post_mlp_layernorm"] if sandwich else []
        for name in self.norms:
            self.add_module(name, RMSNorm(d, c.rms_norm_eps))

    def make_heads(self, c: Any) -> nn.Module:
        d, head = c.hidden_size, c.hidden_size // c.num_attention_heads
        few, bias = c.num_key_value_heads * head, c.bias
        sizes = {"q": (d, d), "k": (d, few), "v": (d, few), "o": (d, d)}
        return make_modules(**{f"{name}_proj": nn.Linear(*pair, bias=bias) for name, pair in sizes.items()})

    def make_latent(self, c: Any) -> nn.Module:
        d, heads, latent = c.hidden_size, c.num_attention_heads, c.kv_lora_rank
        q_width = heads * (c.qk_nope_head_dim + c.qk_rope_head_dim)
        found = make_modules(
            kv_a_proj_with_mqa=nn.Linear(d, latent + c.qk_rope_head_dim, bias=False),
            kv_a_layernorm=RMSNorm(latent, c.rms_norm_eps),
            kv_b_proj=nn.Linear(latent, heads * (c.qk_nope_head_dim + c.v_head_dim), bias=False),
            o_proj=nn.Linear(heads * c.v_head_dim, d, bias=False),
        )
        if c.q_lora_rank is None:
            found.q_proj = nn.Linear(d, q_width, bias=False)
        else:
            found.q_a_proj = nn.Linear(d, c.q_lora_rank, bias=False)
            found.q_a_layernorm = RMSNorm(c.q_lora_rank, c.rms_norm_eps)
            found.q_b_proj = nn.Linear(c.q_lora_rank, q_width, bias=False)
        return found

    def attend(self, x: Tensor) -> Tensor:
        c, a, n, base = self.c, self.self_attn, len(x), self.c.rope_theta
        if not self.is_latent:
            q, k, v = (getattr(a, f"{name}_proj")(x).view(n, -1, x.shape[1] // c.num_attention_heads) for name in "qkv")
            return a.o_proj(attend(rotate(q, base), rotate(k, base), v))
        q = a.q_proj(x) if c.q_lora_rank is None else a.q_b_proj(a.q_a_layernorm(a.q_a_proj(x)))
        q = q.view(n, c.num_attention_heads, -1)
        q = torch.cat((q[..., : c.qk_nope_head_dim], rotate(q[..., c.qk_nope_head_dim :], base, pairs=True)), -1)
        latent, k_rope = a.kv_a_proj_with_mqa(x).split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        y = a.kv_b_proj(a.kv_a_layernorm(latent)).view(n, c.num_attention_heads, -1)
        k, v = y.split([c.qk_nope_head_dim, c.v_head_dim], -1)
        k_rope = rotate(k_rope[:, None], base, pairs=True).expand(-1, c.num_attention_heads, -1)
        return a.o_proj(attend(q, torch.cat((k, k_rope), -1), v))

    def run_mlp(self, x: Tensor) -> Tensor:
        if not self.is_moe:
            return self.mlp(x)
        c, scores = self.c, self.mlp.gate(x).sigmoid()
        ranked = scores + getattr(self.mlp.gate, "e_score_correction_bias", 0.0)
        chosen = torch.zeros_like(scores).scatter(1, ranked.topk(c.num_experts_per_tok, -1).indices, 1.0)
        weights = scores * chosen
        if c.norm_topk_prob:
            weights = weights / weights.sum(-1, keepdim=True)
        y = (
            sum(expert(x) * weights[:, i : i + 1] for i, expert in enumerate(self.mlp.experts))
            * c.routed_scaling_factor
        )
        return y + self.mlp.shared_experts(x) if hasattr(self.mlp, "shared_experts") else y

    def forward(self, x: Tensor) -> Tensor:
        a = self.attend(self.input_layernorm(x))
        if "pre_mlp_layernorm" not in self.norms:
            x = x + a
            return x + self.run_mlp(self.post_attention_layernorm(x))
        x = x + self.post_attention_layernorm(a)
        return x + self.post_mlp_layernorm(self.run_mlp(self.pre_mlp_layernorm(x)))


class Model(nn.Module):
    """Token embedding, layers, last norm, LM head. `names`: of the body and what stands in it."""

    base_model_prefix = "-"

    def __init__(self, c: Any, layer: Any, norm: nn.Module, names: tuple[str, ...], **options: Any) -> None:
        super().__init__()
        body, table, layers, last = names
        self.names, self.scales = names, options.get("scales", (1.0, 1.0))
        rows, d = c.vocab_size, getattr(c, "hidden_size", 0) or c.n_embd
        n = c.num_hidden_layers if hasattr(c, "num_hidden_layers") else c.n_layer
        stack = nn.ModuleList(layer(c, i) for i in range(n))
        self.add_module(body, make_modules(**{table: nn.Embedding(rows, d), layers: stack, last: norm}))
        self.lm_head = nn.Linear(d, rows, bias=options.get("bias", False))
        if options["tied"]:
            self.lm_head.weight = self.get_submodule(f"{body}.{table}").weight

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        body, table, layers, last = self.names
        inner = self.get_submodule(body)
        x = inner.get_submodule(table)(input_ids[0]) * self.scales[0]
        for layer in inner.get_submodule(layers):
            x = layer(x)
        return {"logits": self.lm_head(inner.get_submodule(last)(x))[None] * self.scales[1]}


LLAMA_NAMES = ("model", "embed_tokens", "layers", "norm")


def build_moss(c: Any) -> nn.Module:
    norm = nn.LayerNorm(c.n_embd, eps=c.layer_norm_epsilon)
    return Model(c, MossBlock, norm, ("transformer", "wte", "h", "ln_f"), bias=True, tied=c.tie_word_embeddings)


def build_phi3small(c: Any) -> nn.Module:
    norm, names = nn.LayerNorm(c.hidden_size, eps=c.layer_norm_epsilon), (*LLAMA_NAMES[:3], "final_layernorm")
    scales = (c.mup_embedding_multiplier, 1 / c.mup_width_multiplier)
    return Model(c, Phi3SmallLayer, norm, names, scales=scales, tied=True)


def build_like_llama(layer: Any) -> Any:
    def build(c: Any) -> nn.Module:
        return Model(c, layer, RMSNorm(c.hidden_size, c.rms_norm_eps), LLAMA_NAMES, tied=c.tie_word_embeddings)

    return build


BUILDERS = {
    "hf_olmo": Olmo,
    "moss": build_moss,
    "mixformer-sequential": MixFormer,
    "phi3small": build_phi3small,
    "yuan": build_like_llama(YuanLayer),
    "PanguEmbedded": build_like_llama(PanguLayer),
    "pangu_ultra_moe": build_like_llama(PanguLayer),
}


def build(document: dict[str, Any]) -> nn.Module:
    return BUILDERS[document["model_type"]](SimpleNamespace(**document)).eval()


OLMO = {
    "model_type": "hf_olmo", "architectures": ["OLMoForCausalLM"], "d_model": 32, "n_heads": 4, "n_kv_heads": None,
    "n_layers": 3, "mlp_ratio": 4, "mlp_hidden_size": 44, "vocab_size": 90, "embedding_size": 96, "rope": True,
    "rope_theta": 300, "activation_type": "swiglu", "clip_qkv": None, "include_bias": False, "layer_norm_eps": 0.01,
    "layer_norm_type": "default", "layer_norm_with_affine": False, "bias_for_layer_norm": None, "norm_after": False,
    "attention_layer_norm": False, "embedding_layer_norm": False, "weight_tying": False, "max_sequence_length": 64,
    "multi_query_attention": None,
}  # fmt: skip
OLMO_2 = {
    **OLMO, "attention_layer_norm": True, "layer_norm_type": "rms", "layer_norm_with_affine": True, "norm_after": True,
    "n_kv_heads": 2,
}  # fmt: skip
OLMO_BIASED = {
    **OLMO, "include_bias": True, "layer_norm_with_affine": True, "activation_type": "gelu", "mlp_hidden_size": None,
    "clip_qkv": 0.5, "embedding_layer_norm": True, "attention_layer_norm": True, "multi_query_attention": True,
}  # fmt: skip
MOSS = {
    "model_type": "moss", "architectures": ["MossForCausalLM"], "vocab_size": 96, "n_embd": 64, "n_layer": 3,
    "n_head": 8, "n_inner": 44, "rotary_dim": 4, "n_positions": 64, "layer_norm_epsilon": 0.01,
    "tie_word_embeddings": False,
}  # fmt: skip
MIXFORMER = {
    "model_type": "mixformer-sequential", "architectures": ["MixFormerSequentialForCausalLM"], "vocab_size": 96,
    "n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": None, "rotary_dim": 4, "layer_norm_epsilon": 0.01,
    "architecture": {"block_cls": "parallel", "mixer": {}, "mlp": {"mlp_cls": "mlp"}},
}  # fmt: skip
SIZES = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 44, "max_position_embeddings": 64, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
    "rope_theta": 300.0,
}  # fmt: skip
PHI3_SMALL = {
    **{key: value for key, value in SIZES.items() if key not in ("rms_norm_eps", "rope_theta", "intermediate_size")},
    "model_type": "phi3small", "architectures": ["Phi3SmallForCausalLM"], "layer_norm_epsilon": 0.01,
    "hidden_act": "gegelu", "gegelu_limit": 0.7, "rope_embedding_base": 300.0, "mup_use_scaling": True,
    "mup_attn_multiplier": 1.5, "mup_embedding_multiplier": 3.0, "mup_width_multiplier": 4.0,
    "dense_attention_every_n_layers": 1, "tie_word_embeddings": True, "ff_intermediate_size": 44,
    "gegelu_pad_to_256": False,
}  # fmt: skip
YUAN = {
    **{key: value for key, value in SIZES.items() if key not in ("num_key_value_heads", "rope_theta")},
    "model_type": "yuan", "architectures": ["YuanForCausalLM"], "tie_word_embeddings": True,
}  # fmt: skip
PANGU = {**SIZES, "model_type": "PanguEmbedded", "architectures": ["PanguEmbeddedForCausalLM"], "bias": True}
ULTRA = {
    **SIZES, "model_type": "pangu_ultra_moe", "architectures": ["PanguUltraMoEForCausalLM"], "num_key_value_heads": 4,
    "moe_intermediate_size": 14, "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 3,
    "first_k_dense_replace": 1, "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
    "v_head_dim": 8, "sandwich_norm": True, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "router_enable_expert_bias": False,
}  # fmt: skip
# {model type, what is special: config.json}
MODELS: dict[str, dict[str, Any]] = {
    "hf_olmo": OLMO,
    "hf_olmo, version 2": OLMO_2,
    "hf_olmo, biased": OLMO_BIASED,
    "hf_olmo, learned positions": {**OLMO_BIASED, "rope": False},
    "hf_olmo, tied": {
        **OLMO, "weight_tying": True, "vocab_size": 96, "embedding_size": None, "include_bias": True,
        "activation_type": "relu",
    },
    "moss": MOSS,
    "moss, all rotated": {**MOSS, "rotary_dim": None},
    "mixformer-sequential": MIXFORMER,
    "mixformer-sequential, fused": {**MIXFORMER, "architecture": {"mixer": {}, "mlp": {"mlp_cls": "fused_mlp"}}},
    "phi3small": PHI3_SMALL,
    "phi3small, not scaled": {**PHI3_SMALL, "mup_use_scaling": False},
    "PanguEmbedded": PANGU,
    "PanguEmbedded, not biased": {**PANGU, "bias": False},
    "pangu_ultra_moe": ULTRA,
    "pangu_ultra_moe, plain": {**ULTRA, "sandwich_norm": False, "q_lora_rank": None, "norm_topk_prob": False},
    "pangu_ultra_moe, with a bias": {**ULTRA, "router_enable_expert_bias": True},
}  # fmt: skip
HEADED: dict[str, dict[str, Any]] = {}
COUNTED: dict[str, dict[str, Any]] = {
    "phi3small, sparse": {**PHI3_SMALL, "dense_attention_every_n_layers": 2},
    "yuan": YUAN,
}
