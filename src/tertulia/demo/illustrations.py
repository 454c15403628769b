"""What the team shows each other: pictures, a price list, a stock list."""

import math
from collections.abc import Callable
from typing import Final

from tertulia.demo.canvas import (
    APRICOT,
    BRICK,
    COCOA,
    CREAM,
    HONEY,
    INK,
    OLIVE,
    PLUM,
    SAGE,
    SAND,
    SKY,
    TEAL,
    WHITE,
    Canvas,
)


def drawn(name: str) -> bytes:
    """The file of that name."""
    return _FILES[name]()


def _floor_plan() -> bytes:
    sheet = Canvas(960, 640, CREAM)
    sheet.room(4, 6, 96, 62, WHITE)
    sheet.room(4, 6, 34, 28, SAND)
    sheet.text(19, 17, "kitchen", 3)
    sheet.room(4, 28, 34, 42, SKY)
    sheet.text(19, 35, "store room", 2.6)
    sheet.box(37, 10, 41, 44, COCOA)
    sheet.text(46, 27, "counter", 2.4, COCOA)
    for row in range(2):
        for column in range(3):
            x, y = 56 + column * 12, 18 + row * 13
            for dx, dy in ((-4.2, 0), (4.2, 0), (0, -4.2), (0, 4.2)):
                sheet.disc(x + dx, y + dy, 1.3, SAGE)
            sheet.disc(x, y, 3.4, HONEY)
            sheet.text(x, y, str(row * 3 + column + 1), 2.2)
    for x in range(56, 92, 5):
        sheet.disc(x, 46.4, 1.5, SAGE)
        sheet.disc(x, 57.6, 1.5, SAGE)
    sheet.box(53, 48.5, 91, 55.5, BRICK)
    sheet.text(72, 52, "the long table", 2.8, CREAM)
    sheet.box(8, 46, 26, 58, PLUM)
    sheet.text(17, 52, "stage?", 2.6, CREAM)
    sheet.line([(40, 62), (50, 62)], CREAM, 1.4)
    sheet.text(45, 59, "door", 2.2)
    return sheet.png()


_SALES: Final = (
    ("Mon", 212, 148),
    ("Tue", 236, 161),
    ("Wed", 229, 170),
    ("Thu", 301, 244),
    ("Fri", 287, 255),
    ("Sat", 342, 331),
    ("Sun", 318, 296),
)
"""Cups and pieces of cake of a week."""


def _sales() -> bytes:
    sheet = Canvas(960, 560, WHITE)
    sheet.text(6, 5, "Cups and cakes, last week", 3.2, INK, "lm")
    for n in range(4):
        y = 50 - n * 12
        sheet.line([(10, y), (97, y)], SAND, 0.15)
        sheet.text(8.5, y, str(n * 100), 2, COCOA, "rm")
    for n, (day, cups, cakes) in enumerate(_SALES):
        x = 13 + n * 12
        sheet.box(x, 50 - cups * 0.12, x + 4, 50, TEAL)
        sheet.box(x + 4.4, 50 - cakes * 0.12, x + 8.4, 50, APRICOT)
        sheet.text(x + 4.2, 53, day, 2.3)
    for x, colour, label in ((70, TEAL, "cups"), (83, APRICOT, "cakes")):
        sheet.box(x, 4, x + 2.4, 6.4, colour)
        sheet.text(x + 3.4, 5.2, label, 2.3, INK, "lm")
    return sheet.png()


def _latte_art() -> bytes:
    sheet = Canvas(720, 720, SAND)
    sheet.disc(51, 52, 43, "#d6bf98")
    sheet.disc(50, 50, 42, WHITE)
    sheet.disc(50, 50, 37, COCOA)
    sheet.disc(50, 50, 35.5, "#9a6238")
    for n in range(6):
        width, y = 24 - n * 3.2, 68 - n * 7.4
        sheet.arc(50, y - width * 0.55, width, (28, 152), CREAM, 3.4)
    sheet.disc(46.6, 25.6, 4.6, CREAM)
    sheet.disc(53.4, 25.6, 4.6, CREAM)
    sheet.shape([(42.6, 27.6), (57.4, 27.6), (50, 37)], CREAM)
    sheet.line([(50, 30), (50, 76)], CREAM, 1.4)
    return sheet.png()


def _miga() -> bytes:
    """The cat, asleep on a sack of flour."""
    sheet = Canvas(960, 640, "#e7cfa6")
    sheet.box(-2, 52, 102, 70, COCOA)
    sheet.disc(50, 42, 33, CREAM, 0.45)
    sheet.box(17, 40, 83, 60, CREAM)
    sheet.text(50, 53, "FLOUR  25 kg", 4, BRICK)
    sheet.disc(52, 27, 22, HONEY, 0.5)
    sheet.disc(32, 29, 9, HONEY, 0.9)
    for x in (26.0, 37.0):
        sheet.shape([(x - 3.4, 25), (x + 3.4, 25), (x, 15.5)], HONEY)
    for x in (28.4, 35.4):
        sheet.arc(x, 28, 2.2, (20, 160), INK, 0.6)
    sheet.shape([(30.6, 31), (33.2, 31), (31.9, 32.6)], BRICK)
    for x in (46.0, 53.0, 60.0):
        sheet.line([(x, 18.6), (x + 1.6, 25)], BRICK, 1.4)
    sheet.arc(66, 30, 10, (300, 100), HONEY, 4)
    for n, size in enumerate((2.4, 3.2, 4.2)):
        sheet.text(40 + n * 5, 12 - n * 3.4, "z", size, COCOA)
    return sheet.png()


def _thermometer() -> bytes:
    """What the oven had, in a night."""
    sheet = Canvas(960, 420, WHITE)
    sheet.text(6, 4.5, "Oven, Celsius, 4:00 to 8:00", 2.8, INK, "lm")
    for n in range(4):
        y = 38 - n * 9
        sheet.line([(9, y), (97, y)], SAND, 0.15)
        sheet.text(8, y, str(150 + n * 30), 1.9, COCOA, "rm")
    curve = []
    for n in range(160):
        climb = 64 * min(n / 40, 1.0)
        falls = 26 * math.exp(-(((n - 78) / 7) ** 2)) + 40 * math.exp(-(((n - 124) / 5) ** 2))
        curve.append((10 + n * 0.54, 36 - (climb - falls + 4 * math.sin(n / 5)) * 0.3))
    sheet.line(curve, BRICK, 0.6)
    sheet.text(52, 33, "door", 2, OLIVE)
    sheet.text(77, 36, "door (Arjun)", 2, OLIVE)
    return sheet.png()


_PRICES: Final = (
    ("Ethiopia, washed", "5 kg", "96.00"),
    ("Colombia, honey", "5 kg", "84.50"),
    ("House blend", "10 kg", "142.00"),
    ("Decaf (it is good)", "5 kg", "91.00"),
)


def _price_list() -> bytes:
    sheet = Canvas(595, 842, WHITE)
    sheet.box(8, 10, 92, 24, COCOA)
    sheet.text(50, 17, "Baker & Sons, roasters", 4, CREAM)
    sheet.text(8, 34, "Prices for the winter, in euros", 3, INK, "lm")
    for n, (what, size, price) in enumerate(_PRICES):
        y = 44 + n * 7
        sheet.text(8, y, what, 2.8, INK, "lm")
        sheet.text(62, y, size, 2.8, INK, "rm")
        sheet.text(92, y, price, 2.8, INK, "rm")
        sheet.line([(8, y + 3.4), (92, y + 3.4)], SAND, 0.2)
    sheet.text(8, 82, "There are no sons. It sounded better.", 2.2, COCOA, "lm")
    return sheet.pdf()


def _stock() -> bytes:
    rows = (
        "what,unit,there,order below",
        "bread flour T65,kg,62,40",
        "rye flour,kg,9,10",
        "almonds ground,kg,3.5,5",
        "butter,kg,14,8",
        "eggs,piece,180,90",
        "oat milk,litre,22,24",
        "house blend,kg,11,8",
        "paper cups,piece,40,500",
    )
    return ("\n".join(rows) + "\n").encode()


_FILES: Final[dict[str, Callable[[], bytes]]] = {
    "floor-plan.png": _floor_plan,
    "cups-and-cakes.png": _sales,
    "rosetta.png": _latte_art,
    "miga-at-work.png": _miga,
    "oven-last-night.png": _thermometer,
    "winter-prices.pdf": _price_list,
    "stock.csv": _stock,
}
