"""Classes of the reference that put the head of another task on a model's body.

Each is the architecture with a few additional fields.

Source: the auto mappings of the reference (modeling_auto.py) and the modeling file of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.flow import Block, Body, Data, Repeat, bundle
from paramcount.parts import task_heads as heads
from paramcount.sizes import Condition, ConfigJson, FieldValues, Sizes, before_lm_head, derived, flag, hf
from paramcount.sizes.conditions import one_of
from paramcount.sizes.settings import ACTIVATIONS
from paramcount.sizes.types import Flag, Natural, Positive

if TYPE_CHECKING:
    Fields = dict[str, tuple[Any, Any]]

USUAL_LABELS = 2
OF_BART = 3  # what BartConfig alone takes where no key gives labels


def count_labels(js: ConfigJson, usual: int = USUAL_LABELS) -> int:
    """How many labels a config has, as PreTrainedConfig works it out: num_labels counts more than id2label."""
    names, n = js.get("id2label"), js.get("num_labels")
    if names is not None and not isinstance(names, Mapping):
        raise ParamcountError(
            f"= {describe_value(names)}", where="id2label", expected="a JSON object of numbers and names"
        )
    if names is not None:
        for key, name in names.items():
            if not isinstance(name, str) or not is_whole(key):
                raise ParamcountError(
                    f"contains {describe_value(key)}: {describe_value(name)}",
                    where="id2label",
                    expected="a JSON object of numbers and names",
                )
    if "num_labels" in js and (type(n) is not int or n < 0):
        raise ParamcountError(f"= {describe_value(n)}", where="num_labels", expected="a non-negative integer")
    named = usual if names is None else len({int(key) for key in names})
    counted: int = named if n is None else n
    if js.get("problem_type") == "single_label_classification" and (counted if names is None else named) == 1:
        raise ParamcountError(
            "= 1 with problem_type = single_label_classification", where="num_labels", expected="2 or more"
        )
    return counted


def is_whole(key: str) -> bool:
    try:
        int(key)
    except ValueError:
        return False
    return True


def labels(usual: int = USUAL_LABELS) -> Fields:
    return {"n_labels": (Natural, derived(lambda js, c: count_labels(js, usual), at_root=True))}


def two_labels(js: ConfigJson, c: FieldValues) -> None:
    """The reference cuts the outputs into a start and an end."""
    if (n := count_labels(js)) != 2:
        raise ParamcountError(
            f"= {n} cannot be split into the start and the end of an answer", where="num_labels", expected="2"
        )


def summarised(*, to_labels: bool = False, projected: bool = True) -> Fields:
    """What the summary of a text goes through. `to_labels`, `projected`: what absent keys mean."""

    def lead_to_labels(js: ConfigJson, c: FieldValues) -> bool:
        return flag(js, "summary_proj_to_labels", to_labels) and c.get("n_labels", 1) > 0

    return {
        "summary_projected": (Flag, hf("summary_use_proj", absent=projected)),
        "summary_to_labels": (Flag, derived(lead_to_labels)),
    }


def summary_of_one_position(js: ConfigJson, c: FieldValues) -> None:
    known = ("last", "first", "mean", "cls_index")
    if js.get("summary_type", "last") not in known:
        raise make_choice_error(js["summary_type"], known, where="summary_type")


def summary_as_wide_as(wanted: str) -> Condition:
    """The matrix behind the summary takes a vector of that size."""

    def condition(js: ConfigJson, c: FieldValues) -> None:
        size = c["n_labels"] if c["summary_projected"] and c["summary_to_labels"] else c["d_model"]
        if size != c[wanted]:
            raise ParamcountError(
                f"gives {size} values, but the next matrix takes {c[wanted]}",
                where="summary_proj_to_labels",
                expected="another value",
            )

    return condition


def two_segments(js: ConfigJson, c: FieldValues) -> None:
    """The class itself tells the question from its text."""
    if c["n_token_types"] < 2:
        raise ParamcountError(
            f"= {c['n_token_types']}, but the class uses two token types", where="type_vocab_size", expected="2 or more"
        )


def pooler_fits(js: ConfigJson, c: FieldValues) -> None:
    """DeBERTa's pooler takes the first token's vector and gives as many values to the classifier."""
    size = js.get("pooler_hidden_size", c["d_model"])
    if size != c["d_model"]:
        raise ParamcountError(f"= {describe_value(size)}", where="pooler_hidden_size", expected=f"{c['d_model']}")
    name = js.get("pooler_hidden_act", "gelu")
    if name not in ACTIVATIONS:
        raise make_choice_error(name, ACTIVATIONS, where="pooler_hidden_act")


def both_stacks(js: ConfigJson, c: FieldValues) -> None:
    if not flag(js, "is_encoder_decoder", absent=True):
        raise ParamcountError(
            "= false selects the encoder alone, which is not supported", where="is_encoder_decoder", expected="true"
        )


class TaskHead(NamedTuple):
    """One head, and what its class has besides the architecture that it stands on."""

    build: heads.Build
    fields: Fields
    conditions: tuple[Condition, ...] = ()
    beside_lm_head: bool = False  # it is the second head of a language model
    moved: tuple[str, str] | None = None  # how names of the body begin, and begin in this class
    on: str = ""  # the architecture, where it is not the one of the model type
    body: Callable[[Any, Data], Data] | None = None  # what it stands on, where that is not the architecture's body

    def forward(self, c: Any, tokens: Data) -> Data:
        """Token ids to the outputs of the task."""
        if self.beside_lm_head:
            logits = c.forward(tokens)
            hidden = logits if logits.bodies else before_lm_head(logits)
            return bundle(logits, heads.attach(c, self.build, hidden))
        body = partial(self.body, c) if self.body else c.body
        x = body(tokens)
        return heads.attach(c, self.build, under_other_names(x, self.moved) if self.moved else x)


def under_other_names(out: Data, moved: tuple[str, str]) -> Data:
    """The same flow as one block, whose names begin otherwise."""
    sources: dict[int, Data] = {}
    seen: set[int] = set()
    waiting = [out]
    while waiting:
        data = waiting.pop()
        if id(data) not in seen:
            seen.add(id(data))
            waiting += data.inputs
            if not data.inputs:
                sources[id(data)] = data
    outside = tuple(Data(source.operation, (), source.shape) for source in sources.values())
    return Data(
        Block(),
        outside,
        out.shape,
        bodies=(Body(Repeat("use", 1, 1, moved=moved), tuple(sources.values()), out),),
        part=out.part,
    )


def audio_encoder(c: Any, tokens: Data) -> Data:
    from paramcount.architectures.whisper import listen

    return listen(c, "encoder.")


def words_of_luke(c: Any, tokens: Data) -> Data:
    """LUKE without its pooler, which the class for language modelling has."""
    words: Data = c.forward(tokens, head=False, pooler=False)
    return words


def shortest_text(c: Any, tokens: Data) -> Data:
    """Funnel's blocks without its decoder."""
    states: Data = c.pooled_body(tokens)
    return states


def known_pooling(js: ConfigJson, c: FieldValues) -> None:
    """Cohere Compass has three ways to pool scores; without one, those of the last token count."""
    if (found := js.get("pooling") or "eos") not in ("bos", "eos", "mean"):
        raise ParamcountError(f"= {describe_value(found)}", where="pooling", expected="bos, eos, mean or null")


LABELS = labels()
SCORE = TaskHead(heads.score_last, LABELS)
TOKEN_SCORES = TaskHead(heads.score_tokens, LABELS)
TOKENS = TaskHead(heads.classify_tokens, LABELS)
SPAN = TaskHead(heads.find_span, {})
SPAN_OF_LABELS = TaskHead(heads.find_span, {}, (two_labels,))
MOVED_SPAN = SPAN._replace(moved=("model.", "transformer."))
POOLED = TaskHead(heads.classify_pooled, LABELS)
CHOICE = TaskHead(heads.choose_pooled, {})
NEXT_SENTENCE = TaskHead(heads.follow_pooled, {})
PRE_TRAINING = TaskHead(heads.follow_pooled, {}, beside_lm_head=True)
FIRST = TaskHead(heads.classify_first, LABELS)
END = TaskHead(heads.classify_end, LABELS)
BERT = {
    "ForTokenClassification": TOKENS,
    "ForQuestionAnswering": SPAN_OF_LABELS,
    "ForMultipleChoice": CHOICE,
    "ForSequenceClassification": POOLED,
}
ROBERTA = BERT | {"ForSequenceClassification": FIRST}
APPROXIMATE = BERT | {
    "ForSequenceClassification": TaskHead(heads.classify_first_by_activation, LABELS),
    "ForMultipleChoice": TaskHead(heads.preclassified(lambda c: 1), {}),
    "ForQuestionAnswering": SPAN,
}
SENTENCES = {"ForNextSentencePrediction": NEXT_SENTENCE, "ForPreTraining": PRE_TRAINING}
SCORED = {"ForSequenceClassification": SCORE}
SCORED_TOKENS = {"ForTokenClassification": TOKEN_SCORES}
GENERIC = SCORED | SCORED_TOKENS
GENERIC_SPAN = GENERIC | {"ForQuestionAnswering": SPAN}
GENERIC_MOVED = GENERIC | {"ForQuestionAnswering": MOVED_SPAN}
GPT = SCORED | {"ForTokenClassification": TOKENS}
GPT_SPAN = GPT | {"ForQuestionAnswering": SPAN}
DEBERTA = {
    "ForSequenceClassification": TaskHead(heads.classify_by_pooler(lambda c: c.n_labels), LABELS, (pooler_fits,)),
    "ForTokenClassification": TOKENS,
    "ForQuestionAnswering": SPAN_OF_LABELS,
}
BART = {"ForSequenceClassification": END, "ForQuestionAnswering": SPAN}
SECOND_CHOICE = {
    "DoubleHeadsModel": TaskHead(
        heads.choose_by_summary, summarised(to_labels=True), (summary_of_one_position,), beside_lm_head=True
    )
}
SUMMARISED = LABELS | summarised()
SUMMARISED_TO_LABELS = LABELS | summarised(to_labels=True)
OF_D_MODEL = (summary_of_one_position, summary_as_wide_as("d_model"))

XLM: dict[str, TaskHead] = {
    "ForSequenceClassification": TaskHead(heads.summarise, SUMMARISED_TO_LABELS, (summary_of_one_position,)),
    "ForMultipleChoice": TaskHead(
        heads.summarise_then("logits_proj", lambda c: 1),
        SUMMARISED_TO_LABELS,
        (summary_of_one_position, summary_as_wide_as("n_labels")),
    ),
    "ForTokenClassification": TOKENS,
    "ForQuestionAnsweringSimple": SPAN_OF_LABELS,
    "ForQuestionAnswering": TaskHead(heads.find_span_in_beams("qa_outputs."), {}),
}


def t5(encoder: str) -> Mapping[str, TaskHead]:
    return {
        "ForSequenceClassification": END._replace(moved=("", "transformer.")),
        "ForQuestionAnswering": SPAN_OF_LABELS,
        "ForTokenClassification": TOKENS._replace(on=encoder, moved=("", "transformer.")),
    }


# {model type: (how the names of its classes begin, {how they end: head})}
DECLARED: dict[str, tuple[str, Mapping[str, TaskHead]]] = {
    "albert": ("Albert", BERT | {"ForPreTraining": TaskHead(heads.order_pooled, LABELS, beside_lm_head=True)}),
    "apertus": ("Apertus", SCORED_TOKENS),
    "arcee": ("Arcee", GENERIC_MOVED),
    "axk1": ("AXK1", GENERIC),
    "axk2": ("AXK2", GENERIC),
    "bart": ("Bart", BART | {"ForSequenceClassification": END._replace(fields=labels(OF_BART))}),
    "bert": ("Bert", BERT | SENTENCES),
    "big_bird": (
        "BigBird",
        ROBERTA
        | {
            "ForPreTraining": PRE_TRAINING,
            "ForQuestionAnswering": TaskHead(heads.classify_bigbird_span, {}, (two_segments,)),
        },
    ),
    "bigbird_pegasus": ("BigBirdPegasus", BART),
    "biogpt": ("BioGpt", GPT),
    "bloom": ("Bloom", GPT_SPAN),
    "camembert": ("Camembert", ROBERTA),
    "cohere_compass_text": (
        "CohereCompassText",
        {"ForSequenceClassification": TaskHead(heads.score_as_set, LABELS, (known_pooling,))},
    ),
    "convbert": (
        "ConvBert",
        {
            "ForSequenceClassification": TaskHead(heads.classify_first_activated, LABELS),
            "ForMultipleChoice": TaskHead(
                heads.summarise_then("classifier", lambda c: 1), LABELS | summarised(projected=False), OF_D_MODEL
            ),
            "ForTokenClassification": TOKENS,
            "ForQuestionAnswering": SPAN_OF_LABELS,
        },
    ),
    "ctrl": ("CTRL", {"ForSequenceClassification": TaskHead(heads.score_last_unnamed_bias, LABELS)}),
    "data2vec-text": ("Data2VecText", ROBERTA),
    "deberta": ("Deberta", DEBERTA),
    "deberta-v2": (
        "DebertaV2",
        DEBERTA | {"ForMultipleChoice": TaskHead(heads.classify_by_pooler(lambda c: 1), {}, (pooler_fits,))},
    ),
    "deepseek_v2": ("DeepseekV2", SCORED),
    "deepseek_v3": ("DeepseekV3", GENERIC),
    "diffllama": ("DiffLlama", GENERIC_MOVED),
    "distilbert": (
        "DistilBert",
        BERT
        | {
            "ForSequenceClassification": TaskHead(heads.preclassified(lambda c: c.n_labels), LABELS),
            "ForMultipleChoice": TaskHead(heads.preclassified(lambda c: 1), {}),
        },
    ),
    "doge": ("Doge", SCORED),
    "electra": (
        "Electra",
        ROBERTA
        | {
            "ForMultipleChoice": TaskHead(heads.summarise_then("classifier", lambda c: 1), SUMMARISED, OF_D_MODEL),
            "ForPreTraining": TaskHead(heads.detect_replaced, {}),
        },
    ),
    "ernie": ("Ernie", BERT | SENTENCES),
    "esm": ("Esm", {"ForSequenceClassification": FIRST, "ForTokenClassification": TOKENS}),
    "esmc": ("Esmc", {"ForSequenceClassification": FIRST, "ForTokenClassification": TOKEN_SCORES}),
    "eurobert": (
        "EuroBert",
        {
            "ForSequenceClassification": TaskHead(
                heads.classify_before_mean, LABELS, (one_of("classifier_pooling", ("bos", "mean", "late"), "late"),)
            ),
            "ForTokenClassification": TOKENS,
        },
    ),
    "exaone4": ("Exaone4", GENERIC_MOVED),
    "falcon": ("Falcon", GPT_SPAN),
    "flaubert": ("Flaubert", XLM),
    "fnet": ("FNet", BERT | SENTENCES),
    "funnel": (
        "Funnel",
        {
            "ForPreTraining": TaskHead(heads.detect_replaced_as_activated, {}),
            "ForSequenceClassification": TaskHead(
                heads.classify_first_hidden(lambda c: c.n_labels), LABELS, body=shortest_text
            ),
            "ForMultipleChoice": TaskHead(heads.classify_first_hidden(lambda c: 1), {}, body=shortest_text),
            "ForTokenClassification": TOKENS,
            "ForQuestionAnswering": SPAN_OF_LABELS,
        },
    ),
    "gemma": ("Gemma", GENERIC),
    "gemma2": ("Gemma2", GENERIC),
    "gemma3": ("Gemma3", SCORED),
    "gemma3_text": ("Gemma3Text", SCORED),
    "glm": ("Glm", GENERIC),
    "glm4": ("Glm4", GENERIC),
    "gpt-sw3": ("GPT2", GPT_SPAN | SECOND_CHOICE),
    "gpt2": ("GPT2", GPT_SPAN | SECOND_CHOICE),
    "gpt_bigcode": ("GPTBigCode", GPT),
    "gpt_neo": ("GPTNeo", GPT_SPAN),
    "gpt_neox": ("GPTNeoX", GPT_SPAN),
    "gpt_oss": ("GptOss", GENERIC),
    "gptj": ("GPTJ", SCORED | {"ForQuestionAnswering": SPAN_OF_LABELS}),
    "gte": ("Gte", {"ForSequenceClassification": POOLED, "ForTokenClassification": TOKENS}),
    "helium": ("Helium", GENERIC),
    "hunyuan_v1_dense": ("HunYuanDenseV1", SCORED),
    "hunyuan_v1_moe": ("HunYuanMoEV1", SCORED),
    "ibert": ("IBert", ROBERTA),
    "jamba": ("Jamba", SCORED),
    "jetmoe": ("JetMoe", SCORED),
    "jina_embeddings_v3": (
        "JinaEmbeddingsV3",
        {
            "ForSequenceClassification": FIRST,
            "ForTokenClassification": TOKENS,
            "ForQuestionAnswering": SPAN_OF_LABELS,
        },
    ),
    "layoutlm": (
        "LayoutLM",
        {
            "ForSequenceClassification": POOLED,
            "ForTokenClassification": TOKENS,
            "ForQuestionAnswering": SPAN_OF_LABELS,
        },
    ),
    "led": ("LED", {"ForQuestionAnswering": SPAN}),
    "llama": ("Llama", GENERIC_MOVED),
    "longformer": ("Longformer", ROBERTA),
    "luke": (
        "Luke",
        BERT
        | {
            "ForTokenClassification": TOKENS._replace(body=words_of_luke),
            "ForQuestionAnswering": SPAN_OF_LABELS._replace(body=words_of_luke),
        },
    ),
    "mbart": ("MBart", BART),
    "megatron-bert": ("MegatronBert", BERT | SENTENCES),
    "minicpm3": ("MiniCPM3", SCORED),
    "minimax": ("MiniMax", GENERIC_SPAN),
    "ministral": ("Ministral", GENERIC_MOVED),
    "ministral3": ("Ministral3", GENERIC_SPAN),
    "mistral": ("Mistral", GENERIC_SPAN),
    "mistral4": ("Mistral4", GENERIC),
    "mixtral": ("Mixtral", GENERIC_SPAN),
    "mobilebert": ("MobileBert", BERT | SENTENCES),
    "modernbert": (
        "ModernBert",
        {
            "ForSequenceClassification": TaskHead(heads.transform_then(lambda c: c.n_labels, is_pooled=True), LABELS),
            "ForTokenClassification": TaskHead(heads.transform_then(lambda c: c.n_labels, is_pooled=False), LABELS),
            "ForQuestionAnswering": TaskHead(
                heads.transform_then(lambda c: c.n_labels, is_pooled=False), LABELS, (two_labels,)
            ),
            "ForMultipleChoice": TaskHead(heads.transform_then(lambda c: 1, is_pooled=True), {}),
        },
    ),
    "modernbert-decoder": ("ModernBertDecoder", {"ForSequenceClassification": TaskHead(heads.classify_normed, LABELS)}),
    "modernvbert": (
        "ModernVBert",
        {
            "ForSequenceClassification": TaskHead(heads.classify_transformed(is_pooled=True), LABELS),
            "ForTokenClassification": TaskHead(heads.classify_transformed(is_pooled=False), LABELS),
        },
    ),
    "mpnet": ("MPNet", ROBERTA),
    "mpt": ("Mpt", GPT_SPAN),
    "mra": ("Mra", APPROXIMATE),
    "mt5": ("MT5", t5("mt5.MT5EncoderModel")),
    "mvp": ("Mvp", BART),
    "nemotron": ("Nemotron", GENERIC_MOVED),
    "nomic_bert": ("NomicBert", {"ForSequenceClassification": POOLED, "ForTokenClassification": TOKENS}),
    "nystromformer": ("Nystromformer", APPROXIMATE),
    "olmo": ("Olmo", SCORED),
    "olmo2": ("Olmo2", SCORED),
    "olmo3": ("Olmo3", SCORED),
    "openai-gpt": ("OpenAIGPT", SCORED | SECOND_CHOICE),
    "opt": ("OPT", SCORED | {"ForQuestionAnswering": SPAN}),
    "perceiver": ("Perceiver", {"ForSequenceClassification": TaskHead(lambda c, x: c.classify(x), LABELS)}),
    "persimmon": ("Persimmon", GENERIC),
    "phi": ("Phi", GENERIC),
    "phi3": ("Phi3", GENERIC),
    "phimoe": ("Phimoe", SCORED),
    "plbart": ("PLBart", {"ForSequenceClassification": END}),
    "qwen2": ("Qwen2", GENERIC_MOVED),
    "qwen2_moe": ("Qwen2Moe", GENERIC_SPAN),
    "qwen3": ("Qwen3", GENERIC_MOVED),
    "qwen3_5": ("Qwen3_5", GENERIC),
    "qwen3_5_text": ("Qwen3_5Text", SCORED),
    "qwen3_moe": ("Qwen3Moe", GENERIC_MOVED),
    "qwen3_next": ("Qwen3Next", GENERIC_MOVED),
    "rembert": ("RemBert", BERT),
    "roberta": ("Roberta", ROBERTA),
    "roberta-prelayernorm": ("RobertaPreLayerNorm", ROBERTA),
    "roc_bert": ("RoCBert", BERT),
    "roformer": (
        "RoFormer",
        ROBERTA
        | {
            "ForMultipleChoice": TaskHead(
                heads.summarise_then("classifier", lambda c: 1), LABELS | summarised(projected=False), OF_D_MODEL
            ),
            "ForQuestionAnswering": SPAN,
        },
    ),
    "seed_oss": ("SeedOss", GENERIC_MOVED),
    "smollm3": ("SmolLM3", GENERIC_MOVED),
    "squeezebert": ("SqueezeBert", BERT),
    "stablelm": ("StableLm", GENERIC),
    "starcoder2": ("Starcoder2", GENERIC),
    "t5": ("T5", t5("t5.T5EncoderModel")),
    "tapas": ("Tapas", {"ForSequenceClassification": POOLED}),
    "t5gemma": (
        "T5Gemma",
        dict.fromkeys(
            ("ForSequenceClassification", "ForTokenClassification"),
            TaskHead(heads.score_projected, LABELS, (both_stacks,)),
        ),
    ),
    "ultrabert": (
        "Ultrabert",
        {
            "ForSequenceClassification": TaskHead(heads.classify_pooled_as_set, LABELS),
            "ForTokenClassification": TOKENS,
            "ForQuestionAnswering": SPAN,
        },
    ),
    "ultravbert": (
        "UltraVBert",
        {
            "ForSequenceClassification": TaskHead(heads.classify_pooled_as_set, LABELS),
            "ForTokenClassification": TOKENS,
        },
    ),
    "umt5": ("UMT5", t5("umt5.UMT5EncoderModel")),
    "whisper": (
        "Whisper",
        {
            "ForAudioClassification": TaskHead(
                heads.classify_heard,
                LABELS
                | {
                    "d_projected": (Positive, hf("classifier_proj_size", absent=256)),
                    "weighted_layers": (Flag, hf("use_weighted_layer_sum", absent=False)),
                },
                body=audio_encoder,
            )
        },
    ),
    "xlm": ("XLM", XLM),
    "xlm-roberta": ("XLMRoberta", ROBERTA),
    "xlm-roberta-xl": ("XLMRobertaXL", ROBERTA),
    "xlnet": (
        "XLNet",
        {
            "ForSequenceClassification": TaskHead(
                heads.summarise_then("logits_proj", lambda c: c.n_labels), SUMMARISED, OF_D_MODEL
            ),
            "ForMultipleChoice": TaskHead(heads.summarise_then("logits_proj", lambda c: 1), SUMMARISED, OF_D_MODEL),
            "ForTokenClassification": TOKENS,
            "ForQuestionAnsweringSimple": SPAN_OF_LABELS,
            "ForQuestionAnswering": TaskHead(heads.find_span_in_beams(""), {}),
        },
    ),
    "xmod": ("Xmod", ROBERTA),
    "zamba": ("Zamba", SCORED),
    "zamba2": ("Zamba2", SCORED),
    "yoso": ("Yoso", APPROXIMATE),
}


def task_heads(model_type: str) -> dict[str, TaskHead]:
    """{class of the reference: its head} of a model type.

    >>> sorted(task_heads("llama"))
    ['LlamaForQuestionAnswering', 'LlamaForSequenceClassification', 'LlamaForTokenClassification']
    """
    beginning, found = DECLARED.get(model_type, ("", {}))
    return {beginning + ending: head for ending, head in found.items()}


def with_task_head(architecture: type[Sizes], name: str, head: TaskHead) -> type[Sizes]:
    """The architecture of a class with the head of another task."""
    from pydantic import create_model

    fields: Any = head.fields
    made = create_model(name, __base__=architecture, __module__=architecture.__module__, **fields)
    made.__doc__ = architecture.__doc__
    made.reference, made.equivalent_classes, made.base_model = name, (), ""
    made.conditions = (*architecture.conditions, *head.conditions)
    made.task_forward = lambda c, tokens: head.forward(c, tokens)  # type: ignore[method-assign]
    made.has_lm_head = head.beside_lm_head
    if not head.beside_lm_head:
        made.mtp = lambda c, tokens: None  # type: ignore[method-assign]
    found: type[Sizes] = made
    return found
