"""paramcount cite [MODEL...]"""

from __future__ import annotations

from pathlib import Path

from paramcount.cli.options import CommandRequest, define_command, estimates_option, make_models_argument
from paramcount.errors import ParamcountError
from paramcount.output.tables import Column, Table

TEXT_COLUMNS = ("key", "title", "url", "note")


@define_command("cite", "deepseek-v3 -o refs.bib", make_models_argument("[MODEL...]", required=False))
@estimates_option
def command(request: CommandRequest, estimates: bool) -> None:
    """Print BibTeX for models: each model, the sources of its sizes and figures, and paramcount.

    Without MODEL, cite paramcount alone. MODEL is a name, a family, a wildcard ('qwen3-*') or a Hugging Face id in the
    zoo. -o FILE.bib writes a bibliography."""
    from paramcount.counting import SCHEMA_VERSION
    from paramcount.zoo import count_model
    from paramcount.zoo.citations import cite_model, cite_paramcount, render_bibtex

    if request.changes:
        raise ParamcountError("--set cannot be combined with cite", expected="a model as published")
    models = request.select(estimates=estimates) if request.names else []
    for model in models:
        if not model.sources:
            raise ParamcountError("has no sources to cite", where=model.id, expected="a model in the zoo")
    citations = [c for model in models for c in cite_model(model, None if model.estimate else count_model(model))]
    citations.append(cite_paramcount())
    bibtex = render_bibtex(citations)
    columns = [Column(name, name, right=False) for name in TEXT_COLUMNS]
    rows = [[citation.to_dict().get(name) for name in TEXT_COLUMNS] for citation in citations]
    entries = [citation.to_dict() for citation in citations]
    data = {"schema_version": SCHEMA_VERSION, "citations": entries, "bibtex": bibtex}
    table = Table(columns, rows, data, wraps=True, texts={"table": lambda *_: bibtex}, caption="Sources")
    if request.is_file and Path(str(request.output)).suffix.lower() == ".bib" and not request.flags:
        request = request._replace(format=request.format or "table")
    request.emit(table, request.collect_messages(models))
