"""A comparison as Python hands it out: a short text, a table in a notebook, a DataFrame, figures, LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from fedrec.report.figures.comparison import curve_plot, dot_plot
from fedrec.report.model.comparison import Comparison
from fedrec.report.page.comparison import results_table
from fedrec.report.text.latex import comparison_latex
from fedrec.report.text.records import as_csv
from fedrec.report.text.wording import title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Compared(Comparison):
    """Methods side by side, with what people do with them."""

    @classmethod
    def of(cls, comparison: Comparison) -> Compared:
        return cls(**{field.name: getattr(comparison, field.name) for field in fields(Comparison)})

    def figure(self, kind: Literal["methods", "rounds"] = "methods") -> Figure | None:
        """Every method's main metric, or validation over rounds (None where nothing has several rounds)."""
        return dot_plot(self) if kind == "methods" else curve_plot(self)

    def latex(self) -> str:
        """The table for a paper."""
        return comparison_latex(self)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each method: mean and spread of every metric, costs, failures."""
        import io

        import pandas as pd

        return pd.read_csv(io.StringIO(as_csv(self)))

    def __repr__(self) -> str:
        best = next((row for row in self.rows if row.runs), None)
        first = f"; first: {best.method} ({self.main} {best.cells[self.main].summary.mean:.4f})" if best else ""
        return f"<fedrec comparison: {len(self.rows)} methods, {title(self)}{first}>"

    def _repr_html_(self) -> str:
        return f"<div>{results_table(self)}</div>"
