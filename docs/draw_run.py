#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Draws captured terminal text as SVG: docs/draw_run.py < capture > docs/run.svg. docs/draw_run.sh makes the capture of
# docs/run.svg.
# Supports colours, bold, and the control sequence that erases the progress line.
import html
import re
import sys

COLOURS = {"31": "#e06c75", "32": "#98c379", "33": "#e5c07b"}
WIDTH, LINE, SIZE, PAD = 7.25, 17, 12, 14
COLUMNS = 132


def clipped(line):
    """The line, cut off at the width of the picture."""
    seen = 0
    for piece in re.finditer(r"\033\[[0-9;]*m|.", line):
        seen += not piece.group().startswith("\033")
        if seen > COLUMNS:
            return line[:piece.start()] + "…"
    return line


def spans(line):
    """(style, text) of each piece of a line."""
    style = ""
    for piece in re.split(r"(\033\[[0-9;]*m)", line):
        if piece.startswith("\033["):
            codes = piece[2:-1].split(";")
            colour = next((COLOURS[c] for c in codes if c in COLOURS), "")
            style = (f' fill="{colour}"' if colour else "") + (
                ' font-weight="bold"' if "1" in codes else "")
        elif piece:
            yield style, piece


def draw(text):
    lines = [clipped(re.split(r"\r\033\[K", line)[-1].rstrip("\r "))
             for line in text.replace("\r\n", "\n").rstrip("\n").split("\n")]
    columns = max(len(re.sub(r"\033\[[0-9;]*m", "", line)) for line in lines)
    width, height = columns * WIDTH + 2 * PAD, len(lines) * LINE + 2 * PAD
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
          f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}" '
          'fill="#d7dae0" xml:space="preserve"><style>text { white-space: pre }</style>')
    print('<rect width="100%" height="100%" rx="6" fill="#21252b"/>')
    for number, line in enumerate(lines):
        y = PAD + SIZE + number * LINE
        body = "".join(f"<tspan{style}>{html.escape(piece)}</tspan>" if style else html.escape(piece)
                       for style, piece in spans(line))
        if body:
            print(f'<text x="{PAD}" y="{y}">{body}</text>')
    print("</svg>")


draw(sys.stdin.read())
