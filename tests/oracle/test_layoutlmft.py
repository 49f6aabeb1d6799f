"""LayoutLMv2's head for relations, which only its authors have, has the tensors of a transcription of re.py of
layoutlmft in microsoft/unilm@768a3c873f59.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import torch
from torch import nn

from tests.oracle.differential import build_model, count_document, name_tensors, silence
from tests.type_files import load_facts

CLASS = "LayoutLMv2ForRelationExtraction"


class Extractor(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.entity_emb = nn.Embedding(3, d)
        layers = [nn.Linear(2 * d, d), nn.ReLU(), nn.Dropout(), nn.Linear(d, d // 2), nn.ReLU(), nn.Dropout()]
        self.ffnn_head = self.ffnn_tail = nn.Sequential(*layers)
        self.rel_classifier = nn.Module()
        self.rel_classifier.bilinear = nn.Bilinear(d // 2, d // 2, 2, bias=False)
        self.rel_classifier.linear = nn.Linear(d // 2 * 2, 2)


def test_the_head_for_relations_has_the_tensors_of_its_authors() -> None:
    silence()
    case = next(case for case in load_facts("layoutlmv2")["cases"] if "refused" not in case)["config"]
    model = build_model({**case, "architectures": ["LayoutLMv2Model"]}, "LayoutLMv2Model")
    with torch.device("meta"):
        head = Extractor(case["hidden_size"]).state_dict()
    expected = {f"layoutlmv2.{name}": shape for name, shape in name_tensors(model)[0].items()}
    expected |= {f"extractor.{name}": tuple(values.shape) for name, values in head.items()}
    _, learned, _ = count_document({**case, "architectures": [CLASS]})
    assert learned == expected
