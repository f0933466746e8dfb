"""Charts of results as self-contained SVG: bars with intervals, curves, scatter.

Infinite values are written and not drawn; NaN is refused. The same data give the same bytes, light
or dark as the reader prefers.
"""

from treelm.view.bar_charts import draw_bar_chart, draw_grouped_bars
from treelm.view.chart_data import Bar, Point, Reference, Series
from treelm.view.point_charts import draw_line_chart, draw_scatter

__all__ = [
    "Bar",
    "Point",
    "Reference",
    "Series",
    "draw_bar_chart",
    "draw_grouped_bars",
    "draw_line_chart",
    "draw_scatter",
]
