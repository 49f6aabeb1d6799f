"""Classes of the reference that put the head of another task on a model's body.

Each is the architecture with a few additional fields.

Source: the auto mappings of the reference (modeling_auto.py) and the modeling file of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.flow import Data
from paramcount.parts import task_heads as heads

if TYPE_CHECKING:
    Fields = dict[str, tuple[Any, Any]]

USUAL_LABELS = 2
OF_BART = 3  # what BartConfig alone takes where no key gives labels


def count_labels(js: sizes.ConfigJson, usual: int = USUAL_LABELS) -> int:
    """How many labels a config has, as PreTrainedConfig works it out: num_labels counts more than id2label."""
    names, n = js.get("id2label"), js.get("num_labels")
    if names is not None and not isinstance(names, Mapping):
        raise sizes.make_value_error(names, "id2label", "a JSON object of numbers and names")
    if names is not None:
        for key, name in names.items():
            if not isinstance(name, str) or not is_whole(key):
                raise ParamcountError(
                    f"contains {describe_value(key)}: {describe_value(name)}",
                    where="id2label",
                    expected="a JSON object of numbers and names",
                )
    if "num_labels" in js and (type(n) is not int or n < 0):
        raise sizes.make_value_error(n, "num_labels", "a non-negative integer")
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
    return {"n_labels": (sizes.Natural, sizes.derived(lambda js, c: count_labels(js, usual), at_root=True))}


def two_labels(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference cuts the outputs into a start and an end."""
    if (n := count_labels(js)) != 2:
        raise ParamcountError(
            f"= {n} cannot be split into the start and the end of an answer", where="num_labels", expected="2"
        )


def summarised(*, to_labels: bool = False, projected: bool = True) -> Fields:
    """What the summary of a text goes through. `to_labels`, `projected`: what absent keys mean."""

    def lead_to_labels(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
        return sizes.flag(js, "summary_proj_to_labels", to_labels) and c.get("n_labels", 1) > 0

    return {
        "summary_projected": (sizes.Flag, sizes.hf("summary_use_proj", absent=projected)),
        "summary_to_labels": (sizes.Flag, sizes.derived(lead_to_labels)),
    }


def summary_of_one_position(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    known = ("last", "first", "mean", "cls_index")
    if js.get("summary_type", "last") not in known:
        raise make_choice_error(js["summary_type"], known, where="summary_type")


@sizes.options_first
def summary_as_wide_as(js: sizes.ConfigJson, c: sizes.FieldValues, wanted: str) -> None:
    """The matrix behind the summary takes a vector of that size."""
    size = c["n_labels"] if c["summary_projected"] and c["summary_to_labels"] else c["d_model"]
    if size != c[wanted]:
        raise ParamcountError(
            f"gives {size} values, but the next matrix takes {c[wanted]}",
            where="summary_proj_to_labels",
            expected="another value",
        )


def pooler_fits(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """DeBERTa's pooler takes the first token's vector and gives as many values to the classifier."""
    size = js.get("pooler_hidden_size", c["d_model"])
    if size != c["d_model"]:
        raise sizes.make_value_error(size, "pooler_hidden_size", f"{c['d_model']}")
    name = js.get("pooler_hidden_act", "gelu")
    if name not in sizes.ACTIVATIONS:
        raise make_choice_error(name, sizes.ACTIVATIONS, where="pooler_hidden_act")


class TaskHead(NamedTuple):
    """One head, and what its class has besides the architecture that it stands on."""

    build: heads.Build
    fields: Fields
    conditions: tuple[sizes.Condition, ...] = ()
    beside_lm_head: bool = False  # it is the second head of a language model
    moved: tuple[str, str] | None = None  # how names of the body begin, and begin in this class
    on: str = ""  # the architecture, where it is not the one of the model type
    body: Callable[[Any, Data], Data] | None = None  # what it stands on, where that is not the architecture's body
    is_causal: bool = True  # False if tokens see later ones whatever the architecture does
    publisher: str = ""  # whose code the class is, if not that of the architecture's reference

    def forward(self, c: Any, tokens: Data) -> Data:
        """Token ids to the outputs of the task."""
        if self.beside_lm_head:
            logits = c.forward(tokens)
            hidden = logits if logits.bodies else sizes.before_lm_head(logits)
            return ops.bundle(logits, heads.attach(c, self.build, hidden))
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
        ops.Block(),
        outside,
        out.shape,
        bodies=(ops.Body(ops.ONCE, tuple(sources.values()), out, renaming=ops.Renaming(moved=moved)),),
        part=out.part,
    )


LABELS = labels()
SCORE = TaskHead(heads.score_last, LABELS)
TOKEN_SCORES = TaskHead(heads.score_tokens, LABELS)
TOKENS = TaskHead(heads.classify_tokens, LABELS)
SPAN = TaskHead(heads.find_span, {})
SPAN_OF_LABELS = TaskHead(heads.find_span, {}, (two_labels,))
MOVED_SPAN = SPAN._replace(moved=("model.", "transformer."))
POOLED = TaskHead(heads.of_pooled(heads.classify_tokens), LABELS)
CHOICE = TaskHead(heads.of_pooled(heads.score("classifier", 1)), {})  # one score for each of several texts
NEXT_SENTENCE = TaskHead(heads.of_pooled(heads.score("cls.seq_relationship", 2)), {})
PRE_TRAINING = NEXT_SENTENCE._replace(beside_lm_head=True)
FIRST = TaskHead(heads.through("classifier.dense", "classifier.out_proj"), LABELS)  # RoBERTa
FIRST_ACTIVATED = TaskHead(heads.through("classifier.dense", "classifier.out_proj", by="activation"), LABELS)
END = TaskHead(
    heads.through("classification_head.dense", "classification_head.out_proj"), LABELS
)  # BART: the end token
BERT = {
    "ForTokenClassification": TOKENS,
    "ForQuestionAnswering": SPAN_OF_LABELS,
    "ForMultipleChoice": CHOICE,
    "ForSequenceClassification": POOLED,
}
ROBERTA = BERT | {"ForSequenceClassification": FIRST}
APPROXIMATE = BERT | {
    "ForSequenceClassification": FIRST_ACTIVATED,
    "ForMultipleChoice": TaskHead(heads.through("pre_classifier", "classifier", 1, activation="relu"), {}),
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
POOLER = ("pooler.dense", "classifier")
DEBERTA = {
    "ForSequenceClassification": TaskHead(heads.through(*POOLER, by="pooler_activation"), LABELS, (pooler_fits,)),
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
        heads.summarise_then("logits_proj", 1),
        SUMMARISED_TO_LABELS,
        (summary_of_one_position, summary_as_wide_as("n_labels")),
    ),
    "ForTokenClassification": TOKENS,
    "ForQuestionAnsweringSimple": SPAN_OF_LABELS,
    "ForQuestionAnswering": TaskHead(heads.find_span_in_beams("qa_outputs."), {}),
}


GPT2_HEADS = GPT_SPAN | SECOND_CHOICE
GPT_HEADS = SCORED | SECOND_CHOICE
BERT_SENTENCES = BERT | SENTENCES


def t5(encoder: str) -> Mapping[str, TaskHead]:
    return {
        "ForSequenceClassification": END._replace(moved=("", "transformer.")),
        "ForQuestionAnswering": SPAN_OF_LABELS,
        "ForTokenClassification": TOKENS._replace(on=encoder, moved=("", "transformer.")),
    }
