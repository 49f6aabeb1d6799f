"""Classes of the reference that put the head of another task on a model's body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.architectures.classes import get_reference_class, strip_class_ending
from paramcount.declare import parts, sizes


def list_task_heads(model_type: str) -> dict[str, parts.TaskHead]:
    """{class of the reference: its head} of a model type.

    >>> sorted(list_task_heads("llama"))
    ['LlamaForQuestionAnswering', 'LlamaForSequenceClassification', 'LlamaForTokenClassification']
    """
    cls = architecture(model_type)
    found = read_heads(cls, "task_heads", parts.tasks)
    beginning = vars(cls).get("task_head_prefix") or strip_class_ending(get_reference_class(cls))
    return {beginning + ending: head for ending, head in found.items()}


def list_all_heads(model_type: str) -> dict[str, parts.TaskHead]:
    """The same with those that only publishers have.

    >>> sorted(list_all_heads("internlm2"))
    ['InternLM2ForRewardModel', 'InternLM2ForSequenceClassification']
    """
    published = read_heads(architecture(model_type), "published_heads", parts.published_heads)
    return {**list_task_heads(model_type), **published}


def read_heads(cls: type[sizes.Sizes], attribute: str, tables: object) -> Mapping[str, parts.TaskHead]:
    """The heads that an attribute of an architecture states, or that are in the one of `tables` that it names."""
    declared = vars(cls).get(attribute, {})  # those of a class that it extends are not its own
    found: Mapping[str, parts.TaskHead] = getattr(tables, declared) if isinstance(declared, str) else declared
    return found


def list_headed_types() -> Iterator[str]:
    """The model types of the reference with classes that have the head of another task."""
    names = (name for name in ARCHITECTURES if not split_name(name)[1] and list_task_heads(name))
    return (name for name in names if " of " not in architecture(name).reference)


def with_task_head(architecture: type[sizes.Sizes], name: str, head: parts.TaskHead) -> type[sizes.Sizes]:
    """The architecture of a class with the head of another task."""
    fields = {field: declared for field, (_, declared) in head.fields.items()}
    annotations = {field: annotation for field, (annotation, _) in head.fields.items()}
    made: Any = type(name, (architecture,), {**fields, "__annotations__": annotations})
    made.__module__ = architecture.__module__
    made.__doc__ = architecture.__doc__
    publisher = head.publisher or architecture.reference.partition(" of ")[2]
    made.reference = f"{name} of {publisher}" if publisher else name
    made.equivalent_classes, made.base_model = (), ""
    made.config_class = sizes.fields.find_config_class(architecture)
    made.conditions = (*architecture.conditions, *head.conditions)
    made.task_forward = lambda c, tokens: head.forward(c, tokens)
    made.has_lm_head = head.beside_lm_head
    if not head.is_causal:
        made.is_causal = False
    if not head.beside_lm_head:
        made.mtp = lambda c, tokens: None
    return made
