#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the README and the site; see scripts/pictures."""

import html
import pathlib
import re
import sys

FOLDER = pathlib.Path("Sources/Curlew/Curlew.docc/Resources")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
THEMES = {
    "": {"paper": "#ffffff", "ink": "#1d2430", "soft": "#5b6675", "line": "#c9d1db", "own": "#0b6bcb", "other": "#a8b3c2",
         "floor": "#5b6675", "box": "#eef3f9", "warm": "#b3541e"},
    "~dark": {"paper": "#14181f", "ink": "#e8edf4", "soft": "#9aa7b8", "line": "#3a4452", "own": "#5ab0ff", "other": "#55606f",
              "floor": "#9aa7b8", "box": "#1f2733", "warm": "#f0a26b"},
}
PEERS = ("C floor", "**Curlew**, `await`", "Go net/http", "async-http-client", "URLSession")
CASE = "GET 1 KiB, HTTP/1.1, 64 in flight"
FILE = "1 GiB to a file"


class Picture:
    """An SVG that is put together from shapes, in the colours of a theme."""

    def __init__(self, width, height, title, theme):
        self.theme, self.title, self.size = theme, title, (width, height)
        self.shapes = [f'<rect width="{width}" height="{height}" rx="8" fill="{theme["paper"]}"/>']

    def text(self, x, y, text, color="ink", size=14, anchor="start", weight="normal"):
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" fill="{self.theme[color]}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{html.escape(text, quote=False)}</text>')

    def box(self, x, y, width, height, fill="box", stroke="line"):
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{self.theme[fill]}" '
            f'stroke="{self.theme[stroke]}"/>')

    def bar(self, x, y, width, height, fill):
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(width, 1):g}" height="{height:g}" rx="3" fill="{self.theme[fill]}"/>')

    def arrow(self, points, color="soft", dashed=False):
        path = " ".join(f"{'M' if index == 0 else 'L'}{x:g} {y:g}" for index, (x, y) in enumerate(points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.shapes.append(
            f'<path d="{path}" fill="none" stroke="{self.theme[color]}" stroke-width="1.6"{dash} marker-end="url(#{color})"/>')

    def svg(self):
        width, height = self.size
        markers = "".join(
            f'<marker id="{color}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{self.theme[color]}"/></marker>' for color in ("soft", "warm"))
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'font-family="{FONT}">', f"<title>{html.escape(self.title)}</title>", f"<defs>{markers}</defs>", *self.shapes, "</svg>"]
        return "\n".join(lines) + "\n"


def table(text, mark):
    """The rows between two marks of BENCHMARKS.md: work, program and the other cells."""
    rows, work = [], ""
    for line in text.split(f"<!-- {mark} -->")[1].split("<!-- end of")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 8 or cells[0].startswith(("---", "Work")):
            continue
        work = cells[0] or work
        rows.append((work, *cells[1:]))
    return rows


def number(cell):
    """What a cell says, in microseconds if it is a time."""
    match = re.match(r"([\d,.]+)\s*(s\b|µs)?", cell)
    return float(match[1].replace(",", "")) * (1e6 if match[2] == "s" else 1)


def bars(rows, work, column):
    found = {row[1]: row[column] for row in rows if row[0] == work}
    missing = [peer for peer in PEERS if peer not in found]
    if missing:
        sys.exit(f"BENCHMARKS.md: {work} has no row of {', '.join(missing)}")
    return [(peer.replace("**", "").replace(", `await`", ""), found[peer]) for peer in PEERS]


def chart(title, note, values, unit):
    def draw(theme):
        picture = Picture(720, 92 + 34 * len(values), title, theme)
        picture.text(24, 36, title, size=17, weight="600")
        largest = max(number(cell) for _, cell in values)
        for index, (name, cell) in enumerate(values):
            y = 58 + 34 * index
            own = name == "Curlew"
            picture.text(176, y + 16, name, anchor="end", weight="600" if own else "normal")
            width = 420 * number(cell) / largest
            picture.bar(188, y, width, 22, "own" if own else "floor" if name == "C floor" else "other")
            picture.text(196 + width, y + 16, cell if cell.endswith("s") else f"{cell} {unit}", color="ink" if own else "soft")
        picture.text(24, 78 + 34 * len(values), note, color="soft", size=12)
        return picture.svg()

    return draw


def layers(architecture):
    """The modules of ARCHITECTURE.md's table, by whether they see Core."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", architecture, re.M)
    base = ["Curlew", "CurlewCore", "CurlewEncoding", "CurlewCache", "CurlewTransport", "CurlewHTTP", "CCurlew"]
    names = [name for name, _, _ in rows]
    for name in base:
        if name not in names:
            sys.exit(f"ARCHITECTURE.md: the table has no row of {name}")
    return [name for name, _, sees in rows if name not in base and "Core" in sees], \
        [name for name, _, sees in rows if name not in base and "Core" not in sees]


def architecture(text):
    above, beside = layers(text)

    def draw(theme):
        columns = 4
        count = -(-len(above) // columns)
        top = 74 + 40 * count
        picture = Picture(760, top + 330, "The layers of Curlew: imports only go down", theme)
        picture.text(24, 36, "Products on Core, each by itself", size=15, weight="600")
        for index, name in enumerate(above):
            x, y = 24 + 180 * (index % columns), 52 + 40 * (index // columns)
            picture.box(x, y, 172, 32)
            picture.text(x + 86, y + 21, name, size=13, anchor="middle")

        def row(y, names, height=38):
            width = (712 - 8 * (len(names) - 1)) / len(names)
            for index, (name, note) in enumerate(names):
                x = 24 + index * (width + 8)
                picture.box(x, y, width, height, stroke="own")
                picture.text(x + width / 2, y + 24, f"{name} · {note}" if note else name, size=13, anchor="middle")

        picture.text(24, top, "The product Curlew", size=15, weight="600")
        row(top + 14, [("Curlew", "functions on SessionManager.default, re-exports")])
        row(top + 64, [("CurlewCore", "sessions, requests, tasks, follow-ups, validation, responses")])
        row(top + 114, [("CurlewEncoding", ""), ("CurlewCache", "RFC 9111"), ("CurlewTransport", "one thread")])
        row(top + 164, [("CurlewHTTP", "methods, fields, URLs, errors; no I/O"), ("CCurlew", "C over libcurl")])
        picture.box(24, top + 226, 712, 38, fill="paper")
        picture.text(380, top + 250, "libcurl · zlib · Foundation", size=13, anchor="middle", color="soft")
        for y in (52, 102, 152, 214):
            picture.arrow([(380, top + y), (380, top + y + 11)])
        picture.text(24, top + 300, "Beside them: " + ", ".join(beside), size=12, color="soft")
        return picture.svg()

    return draw


def life(theme):
    picture = Picture(760, 470, "The life of a request, from the call to its handlers", theme)
    lanes = [("Caller", 24), ("Session's queue, tasks", 270), ("Event loop's thread", 516)]
    for name, x in lanes:
        picture.text(x + 110, 34, name, anchor="middle", weight="600", size=15)

    def step(lane, y, title, note):
        x = lanes[lane][1]
        picture.box(x, y, 220, 46, stroke="own" if lane == 2 else "line")
        picture.text(x + 110, y + 20, title, anchor="middle", size=13, weight="600")
        picture.text(x + 110, y + 37, note, anchor="middle", size=11, color="soft")

    step(0, 54, "manager.request(url)", "creates request and driver")
    step(1, 54, "adapt", "adapters, for each attempt")
    step(2, 54, "wait for a connection", "by priority and in order")
    step(2, 132, "exchange", "libcurl sends and receives")
    step(2, 210, "head", "cookies, redirect, challenge")
    step(2, 288, "body", "decoding, limits, backpressure")
    step(1, 288, "validate, commit", "the file gets its name")
    step(1, 366, "finish", "once, on every path")
    step(0, 366, "handlers, await", "in order; decode here")
    picture.arrow([(244, 77), (269, 77)])
    picture.arrow([(490, 77), (515, 77)])
    for y in (100, 178, 256):
        picture.arrow([(626, y), (626, y + 31)])
    picture.arrow([(516, 311), (491, 311)])
    picture.arrow([(380, 334), (380, 365)])
    picture.arrow([(270, 389), (245, 389)])
    picture.arrow([(515, 240), (496, 240), (496, 160), (515, 160)], color="warm", dashed=True)
    picture.text(490, 204, "follow-up", anchor="end", size=12, color="warm")
    picture.arrow([(330, 288), (330, 101)], color="warm", dashed=True)
    picture.text(322, 204, "retry, after a delay", anchor="end", size=12, color="warm")
    picture.text(24, 446, "Cancellation, a deadline, a failed adapter and the end of the session lead to finish from every step.",
                 size=12, color="soft")
    return picture.svg()


def main():
    benchmarks = pathlib.Path("BENCHMARKS.md").read_text(encoding="utf-8")
    rows = table(benchmarks, "table")
    note = "BENCHMARKS.md: medians of rounds; 2 cores of AMD EPYC, libcurl 7.88.1, Swift 6.3.1. Shorter is better."
    pictures = {
        "cpu-per-request": chart(f"CPU per request: {CASE}", note, bars(rows, CASE, 2), ""),
        "memory": chart(f"Peak memory: {CASE}", note, bars(rows, CASE, 6), "MiB"),
        "downloads": chart(f"CPU of a download: {FILE}", note, bars(rows, FILE, 2), ""),
        "architecture": architecture(pathlib.Path("ARCHITECTURE.md").read_text(encoding="utf-8")),
        "request-life": life,
    }
    checks, wrong = sys.argv[1:] == ["--check"], []
    for name, draw in pictures.items():
        for suffix, theme in THEMES.items():
            path, text = FOLDER / f"{name}{suffix}.svg", draw(theme)
            if not checks:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != text:
                wrong.append(path)
    for path in wrong:
        print(f"{path}:1: is out of date; scripts/pictures draws it", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
