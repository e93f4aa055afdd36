#!/usr/bin/env python3
"""Draws the output of a program on a terminal as an SVG for the documents. Usage: `script -qec COMMAND LOG`, then
`draw_terminal.py 'COMMAND AS SHOWN' LOG OUT.svg`. Supports only what fovea prints: carriage returns, erasing to the end of a line, and
styles."""
import html
import re
import sys

CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 18, 16  # width and height of a character of a 14 px monospace font
BACKGROUND, TEXT, DIM, PROMPT = "#16181d", "#d7dae0", "#8b919c", "#7fb685"
PARTS = re.compile(r"\x1b\[(\d*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def screen(log):
    """Returns the final lines of the terminal: lists of (character, colour)."""
    lines, column, colour = [[]], 0, TEXT
    for code, kind, back, newline, text in PARTS.findall(log):
        if back:
            column = 0
        elif newline:
            lines.append([])
            column = 0
        elif kind == "K":
            del lines[-1][column:]
        elif kind == "m":
            colour = DIM if code == "2" else TEXT
        for character in text:
            line = lines[-1]
            line.extend([(" ", colour)] * (column + 1 - len(line)))
            line[column] = (character, colour)
            column += 1
    while lines and not any(character.strip() for character, _ in lines[-1]):
        lines.pop()
    return lines


def spans(line):
    out, at = "", 0
    while at < len(line):
        end = at
        while end < len(line) and line[end][1] == line[at][1]:
            end += 1
        # Uses no-break spaces, since browsers collapse other spaces, even with xml:space.
        text = html.escape("".join(character for character, _ in line[at:end])).replace(" ", "\u00a0")
        out += f'<tspan fill="{line[at][1]}">{text}</tspan>'
        at = end
    return out


def main():
    command, log, out = sys.argv[1:]
    with open(log, encoding="utf-8", newline="") as file:
        text = re.sub(r"^Script (started|done).*\n?", "", file.read(), flags=re.MULTILINE)
    lines = [[("$", PROMPT), (" ", TEXT)] + [(character, TEXT) for character in command], *screen(text)]
    width = 2 * MARGIN + CELL_WIDTH * max(len(line) for line in lines)
    height = 2 * MARGIN + LINE_HEIGHT * len(lines)
    rows = "\n".join(f'<text x="{MARGIN}" y="{MARGIN + LINE_HEIGHT * (row + 0.75):g}">{spans(line)}</text>'
                     for row, line in enumerate(lines) if line)
    with open(out, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                   f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
                   f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n{rows}\n</svg>\n')


if __name__ == "__main__":
    main()
