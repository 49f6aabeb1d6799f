"""Pictures: a forward pass drawn to scale, a bar chart of many models, and an HTML report.

`pictures` turns a trace into a `Drawing`: sections, items, pieces and arrows as plain data, which `render` writes as
SVG, HTML or PNG. `bars` needs matplotlib and `report` needs jinja2; both are in the [plot] extra and are imported only
when they are needed.
"""
