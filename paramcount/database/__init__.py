"""The zoo as a database: the columns that users name, filters, SQL over in-memory tables, and exported files.

`fields` finds the column that a name refers to, `filters` reads `--where`, `tables` declares every table, `store`
builds them in SQLite, `query` runs a query that can only read, and `export` writes files.
"""
