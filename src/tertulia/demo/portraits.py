"""Pictures of people, programs and the café, and its own emoji: simple things, drawn by hand."""

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
    ROSE,
    SAGE,
    SAND,
    SKY,
    TEAL,
    WHITE,
    Canvas,
)

SIZES: Final = (100, 500)
"""Of a portrait, in pixels."""
EMOJI_SIZE: Final = 64
ICON_SIZE: Final = 256


def portrait(name: str) -> tuple[bytes, bytes]:
    """The picture of that name, as PNGs of both `SIZES`."""
    paper, draw = _PORTRAITS[name]
    sheet = Canvas(SIZES[1], SIZES[1], paper)
    draw(sheet)
    return sheet.png(SIZES[0]), sheet.png()


def emoji(name: str) -> bytes:
    """The café's emoji of that name, as a PNG."""
    sheet = Canvas(EMOJI_SIZE * 2, EMOJI_SIZE * 2, None)
    _EMOJI[name](sheet)
    return sheet.png(EMOJI_SIZE)


def icon() -> bytes:
    """The café's sign, as a PNG."""
    sheet = Canvas(ICON_SIZE, ICON_SIZE, BRICK)
    _cup(sheet, CREAM, COCOA)
    return sheet.png()


def _cup(sheet: Canvas, china: str, coffee: str) -> None:
    sheet.arc(70, 56, 12, (270, 90), china, 5)
    sheet.disc(50, 83, 34, china, 0.16)
    sheet.shape([(24, 44), (76, 44), (66, 78), (34, 78)], china)
    sheet.disc(50, 45, 26, china, 0.26)
    sheet.disc(50, 45, 22, coffee, 0.22)
    for x in (40, 50, 60):
        sheet.line([(x, 33), (x + 2.5, 28), (x - 2.5, 22), (x, 17)], china, 2.2)


def _marcos_cup(sheet: Canvas) -> None:
    _cup(sheet, CREAM, COCOA)


def _cat(sheet: Canvas) -> None:
    for side in (-1, 1):
        ear = [(50 + side * 30, 20), (50 + side * 31, 52), (50 + side * 8, 36)]
        sheet.shape(ear, HONEY)
        sheet.shape([(x - side * 2.5, y + 4) for x, y in ear], ROSE)
    sheet.disc(50, 58, 32, HONEY, 0.88)
    for x in (42, 50, 58):
        sheet.line([(x, 33), (50 + (x - 50) * 0.7, 43)], BRICK, 3)
    sheet.disc(50, 68, 15, CREAM, 0.75)
    for side in (-1, 1):
        sheet.disc(50 + side * 14, 54, 4.6, INK, 1.25)
        sheet.disc(50 + side * 14 + 1.5, 51.5, 1.4, WHITE)
        sheet.arc(50 + side * 5, 67, 5, (10, 170), INK, 1.6)
        for tilt in (-3, 3):
            sheet.line([(50 + side * 17, 67), (50 + side * 37, 66 + tilt)], COCOA, 0.9)
    sheet.shape([(46, 62), (54, 62), (50, 66.5)], BRICK)


def _loaf(sheet: Canvas) -> None:
    sheet.disc(50, 90, 40, COCOA, 0.1)
    sheet.disc(50, 62, 38, BRICK, 0.72)
    sheet.disc(50, 60, 36, APRICOT, 0.7)
    for x in (30, 46, 62):
        sheet.line([(x, 68), (x + 9, 46)], CREAM, 4.5)
        sheet.line([(x + 1.5, 68), (x + 10.5, 46)], HONEY, 1.6)


def _bean(sheet: Canvas) -> None:
    turned = [
        (
            50 + 34 * math.cos(t) * math.cos(0.7) - 24 * math.sin(t) * math.sin(0.7),
            50 + 34 * math.cos(t) * math.sin(0.7) + 24 * math.sin(t) * math.cos(0.7),
        )
        for t in (n * math.tau / 90 for n in range(90))
    ]
    sheet.shape(turned, COCOA)
    curve = [(-32, 0), (-16, 6), (0, 0), (16, -6), (32, 0)]
    sheet.line(
        [
            (50 + x * math.cos(0.7) - y * math.sin(0.7), 50 + x * math.sin(0.7) + y * math.cos(0.7))
            for x, y in curve
        ],
        SAND,
        4,
    )


def _lemon(sheet: Canvas) -> None:
    sheet.disc(50, 52, 35, HONEY)
    sheet.disc(50, 52, 31, CREAM)
    for n in range(8):
        a, b = n * math.tau / 8 + 0.1, (n + 1) * math.tau / 8 - 0.1
        rim = [(50 + 27 * math.cos(t), 52 + 27 * math.sin(t)) for t in (a, (a + b) / 2, b)]
        middle = (a + b) / 2
        sheet.shape([(50 + 4 * math.cos(middle), 52 + 4 * math.sin(middle)), *rim], HONEY)


def _wave(sheet: Canvas) -> None:
    sheet.disc(66, 32, 14, BRICK)
    for row, colour in enumerate((SKY, TEAL, INK)):
        for n in range(-1, 5):
            x = n * 28 + (row % 2) * 14
            sheet.disc(x, 74 + row * 14, 18, colour)
            sheet.arc(x, 74 + row * 14, 12, (180, 360), CREAM, 1.8)


def _moon(sheet: Canvas) -> None:
    sheet.disc(50, 50, 31, HONEY)
    sheet.disc(63, 42, 27, PLUM)
    for x, y, size in ((70, 30, 4.5), (80, 56, 3), (60, 52, 2.4)):
        points = [
            (x + radius * math.cos(t), y + radius * math.sin(t))
            for n in range(10)
            for t, radius in [(n * math.tau / 10 - math.tau / 4, size if n % 2 == 0 else size / 2)]
        ]
        sheet.shape(points, CREAM)


def _sun(sheet: Canvas) -> None:
    for n in range(12):
        t = n * math.tau / 12
        sheet.line(
            [(50 + r * math.cos(t), 50 + r * math.sin(t)) for r in (30, 40 if n % 2 else 36)],
            HONEY,
            4.4,
        )
    sheet.disc(50, 50, 24, HONEY)
    for side in (-1, 1):
        sheet.disc(50 + side * 8, 46, 2.4, INK)
    sheet.arc(50, 50, 11, (25, 155), INK, 2.4)


def _leaf(sheet: Canvas) -> None:
    left = [(50 - 27 * math.sin(t) ** 1.2, 14 + 66 * t / math.pi) for t in _half_turn()]
    right = [(50 + 27 * math.sin(t) ** 1.2, 14 + 66 * t / math.pi) for t in _half_turn()]
    sheet.shape([*left, *reversed(right)], SAGE)
    sheet.shape([*left, (50, 80), (50, 14)], OLIVE)
    sheet.line([(50, 22), (50, 92)], CREAM, 2.4)
    for y in (38, 50, 62):
        for side in (-1, 1):
            sheet.line([(50, y + 6), (50 + side * 14, y - 3)], CREAM, 1.6)


def _half_turn() -> list[float]:
    return [n * math.pi / 40 for n in range(41)]


def _flower(sheet: Canvas) -> None:
    sheet.line([(50, 50), (50, 96)], OLIVE, 4)
    sheet.disc(63, 80, 11, OLIVE, 0.5)
    for n in range(14):
        t = n * math.tau / 14
        sheet.disc(50 + 23 * math.cos(t), 44 + 23 * math.sin(t), 8, HONEY)
    sheet.disc(50, 44, 18, COCOA)
    for n in range(9):
        t = n * math.tau / 9
        sheet.disc(50 + 11 * math.cos(t), 44 + 11 * math.sin(t), 1.6, SAND)


def _mountain(sheet: Canvas) -> None:
    sheet.disc(72, 30, 11, HONEY)
    sheet.shape([(-6, 86), (30, 34), (66, 86)], PLUM)
    sheet.shape([(34, 86), (56, 50), (84, 50), (108, 86)], BRICK)
    sheet.shape([(21, 47), (30, 34), (39, 47), (33, 44), (28, 49)], CREAM)
    sheet.box(-2, 84, 102, 104, OLIVE)


def _fish(sheet: Canvas) -> None:
    sheet.shape([(66, 50), (88, 34), (84, 50), (88, 66)], BRICK)
    sheet.disc(46, 50, 28, APRICOT, 0.62)
    sheet.disc(32, 46, 4, WHITE)
    sheet.disc(31, 46, 2, INK)
    for x in (46, 54, 62):
        sheet.arc(x - 6, 50, 8, (300, 60), BRICK, 1.8)


def _bell(sheet: Canvas) -> None:
    sheet.disc(50, 79, 6.5, COCOA)
    sheet.disc(50, 24, 5, HONEY)
    sheet.disc(50, 48, 22, HONEY)
    sheet.shape([(28, 48), (72, 48), (80, 76), (20, 76)], HONEY)
    sheet.line([(20, 76), (80, 76)], BRICK, 4)
    sheet.arc(50, 48, 15, (190, 250), CREAM, 3)


def _oven(sheet: Canvas) -> None:
    sheet.box(18, 20, 82, 84, COCOA)
    for x in (30, 42, 58, 70):
        sheet.disc(x, 30, 3.6, SAND)
    sheet.box(26, 40, 74, 76, INK)
    sheet.box(29, 43, 71, 73, APRICOT)
    sheet.disc(50, 66, 13, HONEY, 0.6)
    sheet.line([(34, 70), (66, 70)], COCOA, 2)


_PORTRAITS: Final[dict[str, tuple[str, Callable[[Canvas], None]]]] = {
    "cat": (TEAL, _cat),
    "cup": (BRICK, _marcos_cup),
    "loaf": (SAND, _loaf),
    "bean": (HONEY, _bean),
    "lemon": (OLIVE, _lemon),
    "wave": (CREAM, _wave),
    "moon": (PLUM, _moon),
    "sun": (ROSE, _sun),
    "leaf": (INK, _leaf),
    "flower": (SKY, _flower),
    "mountain": (SAND, _mountain),
    "fish": (TEAL, _fish),
    "bell": (PLUM, _bell),
    "oven": (SAGE, _oven),
}


def _cup_emoji(sheet: Canvas) -> None:
    _cup(sheet, BRICK, COCOA)


def _burnt_toast(sheet: Canvas) -> None:
    sheet.disc(33, 34, 19, COCOA)
    sheet.disc(67, 34, 19, COCOA)
    sheet.box(18, 32, 82, 88, COCOA)
    sheet.disc(35, 38, 14, INK)
    sheet.disc(65, 38, 14, INK)
    sheet.box(25, 38, 75, 81, INK)
    for x in (38, 62):
        sheet.line([(x - 5, 52), (x + 5, 62)], CREAM, 3)
        sheet.line([(x + 5, 52), (x - 5, 62)], CREAM, 3)
    sheet.arc(50, 80, 9, (210, 330), CREAM, 3)
    for x in (34, 50, 66):
        sheet.line([(x, 12), (x + 3, 8), (x - 2, 3)], COCOA, 2.4)


_EMOJI: Final[dict[str, Callable[[Canvas], None]]] = {
    "tertulia": _cup_emoji,
    "miga": _cat,
    "burnt_toast": _burnt_toast,
}
