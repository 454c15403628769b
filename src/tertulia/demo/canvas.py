"""A sheet to draw on with a few warm colours."""

import io
from collections.abc import Sequence
from typing import Final

from PIL import Image, ImageDraw, ImageFont

CREAM: Final = "#fbf3e4"
SAND: Final = "#ecd9b8"
HONEY: Final = "#e3a83f"
APRICOT: Final = "#e98f5a"
BRICK: Final = "#b4532f"
ROSE: Final = "#d98880"
PLUM: Final = "#7d3f58"
COCOA: Final = "#5b3a29"
INK: Final = "#33241c"
OLIVE: Final = "#7c8450"
SAGE: Final = "#a9b48b"
TEAL: Final = "#3f7577"
SKY: Final = "#a9c7c4"
WHITE: Final = "#ffffff"

_FINE: Final = 2
"""How many times larger it is drawn than it will be, so that edges are smooth."""

Point = tuple[float, float]


class Canvas:
    """A sheet. It is 100 units wide; places and sizes are in units."""

    def __init__(self, width: int, height: int, paper: str | None) -> None:
        self._size = (width, height)
        self._unit = width * _FINE / 100
        mode = "RGBA" if paper is None else "RGB"
        self._image = Image.new(mode, (width * _FINE, height * _FINE), paper or (0, 0, 0, 0))
        self._pen = ImageDraw.Draw(self._image)

    def box(self, left: float, top: float, right: float, bottom: float, colour: str) -> None:
        """A rectangle with its corners a little round."""
        self._pen.rounded_rectangle(self._at(left, top, right, bottom), self._unit * 1.2, colour)

    def room(self, left: float, top: float, right: float, bottom: float, colour: str) -> None:
        """The walls of a rectangle."""
        place = self._at(left, top, right, bottom)
        self._pen.rectangle(place, fill=colour, outline=INK, width=round(self._unit * 0.5))

    def disc(self, x: float, y: float, radius: float, colour: str, flat: float = 1) -> None:
        """A circle, or an ellipse that is `flat` times as high as it is wide."""
        high = radius * flat
        self._pen.ellipse(self._at(x - radius, y - high, x + radius, y + high), fill=colour)

    def arc(
        self, x: float, y: float, radius: float, angles: Point, colour: str, width: float
    ) -> None:
        """A part of a circle between two angles, in degrees clockwise from the right."""
        place = self._at(x - radius, y - radius, x + radius, y + radius)
        self._pen.arc(place, *angles, fill=colour, width=round(width * self._unit))

    def shape(self, points: Sequence[Point], colour: str) -> None:
        """What lies between the points."""
        self._pen.polygon([(x * self._unit, y * self._unit) for x, y in points], fill=colour)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        """A line through the points, with round ends."""
        places = [(x * self._unit, y * self._unit) for x, y in points]
        thick = round(width * self._unit)
        self._pen.line(places, fill=colour, width=thick, joint="curve")
        for x, y in (places[0], places[-1]):
            half = thick / 2
            self._pen.ellipse((x - half, y - half, x + half, y + half), fill=colour)

    def text(
        self, x: float, y: float, text: str, size: float, colour: str = INK, anchor: str = "mm"
    ) -> None:
        """A word or a few, in Latin letters; `anchor` as of Pillow."""
        font = ImageFont.load_default(size * self._unit)
        self._pen.text((x * self._unit, y * self._unit), text, colour, font, anchor)

    def png(self, width: int | None = None) -> bytes:
        """The sheet as a PNG, in its own size or of that width."""
        size = self._size
        if width is not None:
            size = (width, round(size[1] * width / size[0]))
        return self._saved(size, "PNG")

    def pdf(self) -> bytes:
        """The sheet as a page of a PDF."""
        return self._saved(self._size, "PDF")

    def _saved(self, size: tuple[int, int], form: str) -> bytes:
        out = io.BytesIO()
        self._image.resize(size, Image.Resampling.BOX).save(out, form)
        return out.getvalue()

    def _at(
        self, left: float, top: float, right: float, bottom: float
    ) -> tuple[float, float, float, float]:
        unit = self._unit
        return left * unit, top * unit, right * unit, bottom * unit
