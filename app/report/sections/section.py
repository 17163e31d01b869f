"""What a section of the report is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from app.report.charts import Chart, draw
from app.report.markup import Child, tag


@dataclass(frozen=True)
class Section:
    """A section of the page with a heading. Charts come first."""

    name: str
    title: str
    about: str = ""
    charts: Sequence[Chart] = ()
    content: Sequence[Child] = ()

    def drawn(self) -> Element:
        """Return the section as an element of the page."""
        charts = tag("div", [draw(chart) for chart in self.charts], class_="charts") if self.charts else None
        heading = tag("h2", self.title, id=f"{self.name}-title")
        about = tag("p", self.about, class_="about") if self.about else None
        return tag("section", heading, about, charts, self.content, id=self.name, aria_labelledby=f"{self.name}-title")
