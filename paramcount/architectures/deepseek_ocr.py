"""DeepSeek-OCR 1 and 2 as released: the sizes of the encoders stand in the authors' code, those of the language model
at the top level of config.json. Its other sections are copies that the code does not read.
"""

from paramcount.architectures.deepseek_ocr2 import DeepseekOcr2Encoder, DeepseekOcr2Sam, SeenByQueries
from paramcount.architectures.deepseek_vl_v2 import VL2Language
from paramcount.architectures.unlimited_ocr import TwiceSeen, UnlimitedOcrClip, UnlimitedOcrSam
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

ENCODERS = tuple(f"vision_config.width.{name}" for name in ("clip-l-14-224", "qwen2-0-5b", "sam_vit_b"))
UNREAD = ("language_config", "projector_config", "vision_config", *ENCODERS)
N_EMBED = 1280  # of the projector, whatever hidden_size is


class DeepseekOCRSam(UnlimitedOcrSam):
    section = "sam"  # which no config.json has: the defaults are the sizes of the code


class DeepseekOCRClip(UnlimitedOcrClip):
    section = "clip"


class DeepseekOCRLanguage(VL2Language):
    """The layers of both."""

    unused_keys = UNREAD
    image_token = sizes.setting(default=128815)

    def check(c) -> None:
        super().check()
        if c.d_model != N_EMBED:
            raise ParamcountError(f"= {c.d_model}", where=FieldName("d_model"), expected=f"{N_EMBED}, as of an image")


class DeepseekOCR(TwiceSeen, DeepseekOCRLanguage):
    """Source: arXiv:2510.18234, section 3; modeling_deepseekocr.py and deepencoder.py of deepseek-ai/DeepSeek-OCR."""

    reference = "DeepseekOCRForCausalLM of deepseek-ai/DeepSeek-OCR"
    model_types = ("deepseek_vl_v2.DeepseekOCRForCausalLM",)
    base_model = "DeepseekOCRModel"
    section = None

    sam: DeepseekOCRSam
    vision: DeepseekOCRClip

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        image = ops.given("pixels", c.vision.n_channels, "height", "width")
        name, reason = "model.vision_model.embeddings.patch_embedding", "CLIP's layers read SAM's vectors"
        size = c.vision.patch_size
        return (ops.Unreachable(parts.embed_patches(image, name, c.vision.d_model, size), reason),)


class DeepseekOCR2Sam(DeepseekOcr2Sam):
    section = "sam"


class DeepseekOCR2Encoder(DeepseekOcr2Encoder):
    section = "encoder"
    defaults = {"d_model": 896, "n_layers": 24, "n_heads": 14, "n_kv_heads": 2, "d_ff": 4864}

    rope = sizes.rotary(1e6, 131072)


class DeepseekOCR2(SeenByQueries, DeepseekOCRLanguage):
    """Source: modeling_deepseekocr2.py and deepencoderv2.py of deepseek-ai/DeepSeek-OCR-2."""

    reference = "DeepseekOCR2ForCausalLM of deepseek-ai/DeepSeek-OCR-2"
    model_types = ("deepseek_vl_v2.DeepseekOCR2ForCausalLM",)
    base_model = "DeepseekOCR2Model"
    section = None

    sam: DeepseekOCR2Sam
    vision: DeepseekOCR2Encoder
