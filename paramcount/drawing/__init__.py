"""Pictures: a forward pass drawn to scale, a bar chart of many models, and an HTML report.

`pictures` turns a trace into a `Drawing`: sections, items, pieces and arrows as plain data, which `render` writes as
SVG, HTML or PNG; `animation` marks its steps one after the other. `bars` needs matplotlib and `report` needs jinja2,
both in the [plot] extra; `films` needs Pillow and imageio-ffmpeg, in the [animate] extra. They are imported only when
they are needed.
"""
