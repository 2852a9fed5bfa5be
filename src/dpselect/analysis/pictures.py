"""Figures that a notebook shows without a magic command. Importing this file imports matplotlib."""

import io

from matplotlib.figure import Figure

_DOTS_PER_INCH = 100


class Picture(Figure):
    """A matplotlib figure that draws itself as PNG where a notebook asks for it.

    `%matplotlib inline` teaches a notebook to show all figures; it then shows this one in its own way.
    """

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=_DOTS_PER_INCH)
        return written.getvalue()
