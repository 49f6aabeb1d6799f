"""InternVL 1.1 to 3.5 as released: the vision encoder and the language model of `llm_config` in config.json.

Qianfan-OCR has the same names.
"""

from paramcount.architectures.internvl import InternVision, InternVisionLayers, InternVL
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

INTERNVL_LANGUAGES = {
    "GptOssForCausalLM": "gpt_oss",
    "InternLM2ForCausalLM": "internlm2",
    "LlamaForCausalLM": "llama",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}
H2OVL_LANGUAGES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral"}


def no_adapters(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The published code wraps either half in LoRA layers if the config asks for them, which no release does."""
    for key in ("use_backbone_lora", "use_llm_lora"):
        if js.get(key):
            raise ParamcountError(
                f"= {describe_value(js[key])} adds LoRA layers, which are not supported", where=key, expected="0"
            )


class InternViT(InternVisionLayers):
    """Source: configuration_intern_vit.py of OpenGVLab/InternViT-6B-448px-V1-5."""

    config_class = "InternVLVisionConfig"

    conditions = (sizes.one_of("norm_type", ("layer_norm", "rms_norm"), "rms_norm"),)
    layer_names = ("norm1", "norm2", "ls1", "ls2")
    defaults = {"d_model": 3200, "n_layers": 48, "n_heads": 25, "d_ff": 12800}

    patch_size: sizes.Positive = sizes.hf("patch_size", absent=14)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    qkv_bias: sizes.Flag = sizes.hf(absent=False)
    qk_norm: sizes.Flag = sizes.hf("qk_normalization", absent=True)
    norm_bias: sizes.Flag = sizes.derived(lambda js, c: js.get("norm_type", "rms_norm") == "layer_norm")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of the class token and the patches."""
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        x = ops.class_token(x, "embeddings.class_embedding", 1, 1, c.d_model)
        return c.encode(ops.add_positions(x, "embeddings.position_embedding", 1, c.n_patches + 1, c.d_model))

    def attend(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attn.qkv", bias=c.qkv_bias)  # [n, n_heads, d_head]
        if c.qk_norm:
            q, k = (ops.rms_norm(y, f"attn.{name}_norm", c.norm_eps, wide=True) for name, y in (("q", q), ("k", k)))
        return ops.linear(ops.attend(q, k, v), "attn.proj", "output_projection", c.d_model, bias=True)


class InternVLChat(InternVL):
    """Source: arXiv:2312.14238 and arXiv:2404.16821; modeling_internvl_chat.py and modeling_intern_vit.py of
    OpenGVLab/InternVL2-8B. `n_merged`: patches that become one vector.
    """

    reference = "InternVLChatModel of OpenGVLab/InternVL2-8B"
    sections = sizes.Sections("qwen2", section="llm_config", tie_rule="never", classes=INTERNVL_LANGUAGES)
    conditions = (no_adapters,)
    encoder_prefix = "vision_model."
    projector_prefix = "mlp1."
    projector_norm, projector = "0", ("1", "3")

    vision: InternViT  # type: ignore[assignment]

    image_token = ops.Unknown("image_token")  # not in config.json: the tokenizer names it
    views = (-1,)  # of all releases
    activation = "gelu"


class H2OVLChat(InternVLChat):
    """Source: modeling_h2ovl_chat.py of h2oai/h2ovl-mississippi-2b: InternVL's layers around H2O Danube."""

    reference = "H2OVLChatModel of h2oai/h2ovl-mississippi-2b"
    model_types = ("h2ovl_chat",)
    sections = sizes.Sections("llama", section="llm_config", tie_rule="never", classes=H2OVL_LANGUAGES)


class SkyworkChat(InternVLChat):
    """Source: arXiv:2504.05599; modeling_skywork_chat.py of Skywork/Skywork-R1V-38B: InternVL's layers."""

    reference = "SkyworkChatModel of Skywork/Skywork-R1V-38B"
    model_types = ("skywork_chat",)
    sections = sizes.Sections("qwen2", section="llm_config", tie_rule="never", classes={"Qwen2ForCausalLM": "qwen2"})


class QianfanOCRVision(InternVision):
    """InternVL's encoder with the names of InternVL as released."""

    config_class = "QianfanOCRVisionConfig"

    layer_names = InternViT.layer_names
    layers_name = "encoder.layers.{layer}."
    table_names = ("embeddings.patch_embedding", "embeddings.class_embedding", "embeddings.position_embedding")

    def attend(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attn.qkv", bias=c.attention_bias)  # [n, n_heads, d_head]
        if c.qk_norm:
            q, k = (ops.rms_norm(y, f"attention.{name}_norm", 1e-6, wide=True) for name, y in (("q", q), ("k", k)))
        return ops.linear(ops.attend(q, k, v), "attn.proj", "output_projection", c.d_model, bias=True)


class QianfanOCR(InternVL):
    """Source: modeling_qianfan_ocr.py of the reference."""

    reference = "QianfanOCRForConditionalGeneration"
    model_types = ("qianfan_ocr",)
    sections = sizes.Sections("qwen3")
    reference_names = {
        "vision_model.embeddings.patch_embedding.": "model.vision_tower.embeddings.patch_embeddings.projection.",
        "vision_model.encoder.": "model.vision_tower.",
        "vision_model.": "model.vision_tower.",
        "language_model.lm_head.": "lm_head.",
        "language_model.model.": "model.language_model.",
        "": "model.",
    }
    encoder_prefix = "vision_model."
    projector_prefix = "mlp1."
    modules = {
        ".attn.qkv": (".attention.q_proj", ".attention.k_proj", ".attention.v_proj"),
        ".attn.proj": (".attention.projection_layer",),
        "mlp1.1": ("multi_modal_projector.linear_1",),
        "mlp1.3": ("multi_modal_projector.linear_2",),
    }
    projector_norm, projector = "0", ("1", "3")

    vision: QianfanOCRVision
