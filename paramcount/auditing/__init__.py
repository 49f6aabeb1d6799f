"""Audits: tables of claims about models, read from CSV, Markdown or rows, and judged cell by cell against the zoo.

`claim_tables` reads them, `headings` and `cells` say what a column and a cell claim, `verdicts` judges, `consistency` asks whether the
claims in one row can be true together.
"""
