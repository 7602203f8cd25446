"""Charts as SVG text, for the files of a results directory, for Allure and for the page.

- ``claim``: the rounds of a claim over time, and the interval of its ratio at each look.
- ``event``: commits around an event, and the value of each repetition.
- ``capacity``: a latency percentile over the arrival rate, with its objective.
- ``curve``: a sweep: its metric, and below it the p95 latency.
- ``forest``: the ratios of many claims side by side.
- ``latency``: the latency percentiles of each variant. ``timeline``: the load of the machine in every second.
- ``colours``: colours, markers and line styles, and the CSS variables that stand for them in a page.
- ``scales``: ranges and ticks of axes. ``drawing``: figures; the only module that uses matplotlib.

A new chart is a module here with a function that returns SVG text.
"""

__all__ = ["capacity", "claim", "colours", "curve", "drawing", "event", "forest", "latency", "scales", "timeline"]
