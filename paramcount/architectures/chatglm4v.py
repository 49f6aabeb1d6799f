"""GLM-4V: EVA2-CLIP's encoder before GLM-4-9B. Its config.json has ChatGLM's model type and a section more."""

from paramcount.architectures.chatglm import ChatGLM
from paramcount.declare import Data, ops, sizes
from paramcount.errors import ParamcountError
from paramcount.parts.eva2_clip import Eva2Clip, join_squares


def of_later_one(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["first"]:
        raise ParamcountError("is set", where="vision_config", expected="a config of GLM-4V, without ChatGLM-6B's keys")


class ChatGLM4V(ChatGLM):
    """Source: arXiv:2406.12793, section 2; modeling_chatglm.py of THUDM/glm-4v-9b; glm4v.py of vLLM."""

    reference = "ChatGLMForConditionalGeneration of THUDM/glm-4v-9b"
    released_as = {"chatglm": ("vision_config",)}
    gguf = ""
    conditions = (*ChatGLM.conditions, of_later_one)  # type: ignore[assignment]

    vision: Eva2Clip

    def forward(c, tokens: Data) -> Data:
        image = ops.block(c.vision.image(), "transformer.vision.", c.vision.forward, part="vision")
        image = ops.block(image, "transformer.vision.", c.project, part="projector")
        image = Data("divide by scaling_factor", (image,), image.shape)
        return c.decode(ops.insert(c.embed(tokens), tokens, image, ops.Unknown("boi_token_id")))

    def project(c, x: Data) -> Data:
        return join_squares(x, c.d_model, c.d_ff, c.d_model)
