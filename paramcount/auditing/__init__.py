"""Audits: tables of claims about models in CSV, Markdown or rows, compared cell by cell with the zoo; and the number of
values in a checkpoint, explained by what a model has (`why_checkpoint`).

`claim_tables` reads tables, `headings` and `cells` parse columns and cells, `verdicts` compares claims with the zoo,
and `consistency` checks whether the claims in a row can all be true.
"""
