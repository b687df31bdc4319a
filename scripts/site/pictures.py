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
    """The rows between two marks of BENCHMARKS.md: their cells by the headings, of two with the same name the first. A table has more
    columns if instructions were counted in the same run."""
    rows, headings, work = [], [], ""
    for line in text.split(f"<!-- {mark} -->")[1].split("<!-- end of")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "Work":
            headings = cells
        elif len(cells) == len(headings) and not cells[0].startswith("---"):
            work = cells[0] or work
            rows.append(dict(zip(reversed(headings), reversed([work, *cells[1:]]))))
    return rows


def machine(text):
    """The processor and the versions of the table."""
    patterns = r"^\d+ cores of [^,]*", r"libcurl [\d.]+", r"Swift version ([\d.]+\d)"
    cores, libcurl, swift = (re.search(pattern, text, re.M) for pattern in patterns)
    return f"{cores[0].replace('(R)', '').replace(' Processor', '')}, {libcurl[0]}, Swift {swift[1]}"


def number(cell):
    """What a cell says, in microseconds if it is a time."""
    match = re.match(r"([\d,.]+)\s*(s\b|µs)?", cell)
    return float(match[1].replace(",", "")) * (1e6 if match[2] == "s" else 1)


def bars(rows, work, column):
    found = {row["Program"]: row[column] for row in rows if row["Work"] == work}
    missing = [peer for peer in PEERS if peer not in found]
    if missing:
        sys.exit(f"BENCHMARKS.md: {work} has no row of {', '.join(missing)}")
    return [(peer.replace("**", "").replace(", `await`", ""), found[peer]) for peer in PEERS]


# A phone shows pictures 350 points wide: all are as narrow as this, with no text below 13, so that its labels can be read there.
WIDTH = 480


def wrapped(text, length):
    """The text in lines of at most so many characters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= length:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def chart(title, note, values, unit):
    def draw(theme):
        head, notes = wrapped(title, 43), wrapped(note, 66)
        top = 24 + 24 * len(head)
        picture = Picture(WIDTH, top + 48 * len(values) + 18 * len(notes) + 20, title, theme)
        for index, line in enumerate(head):
            picture.text(20, 36 + 24 * index, line, size=18, weight="600")
        largest = max(number(cell) for _, cell in values)
        for index, (name, cell) in enumerate(values):
            y = top + 48 * index
            own = name == "Curlew"
            picture.text(20, y + 18, name, size=15, weight="600" if own else "normal")
            picture.text(WIDTH - 20, y + 18, cell if cell.endswith("s") else f"{cell} {unit}", size=15, anchor="end",
                         color="ink" if own else "soft", weight="600" if own else "normal")
            width = (WIDTH - 40) * number(cell) / largest
            picture.bar(20, y + 25, width, 14, "own" if own else "floor" if name == "C floor" else "other")
        for index, line in enumerate(notes):
            picture.text(20, top + 48 * len(values) + 18 + 18 * index, line, color="soft", size=13)
        return picture.svg()

    return draw


def layers(architecture):
    """The modules of ARCHITECTURE.md's table, by whether they see Core."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", architecture, re.M)
    base = ["Curlew", "CurlewCore", "CurlewEncoding", "CurlewTransport", "CurlewCache", "CurlewCookies", "CurlewHTTP", "CCurlew"]
    names = [name for name, _, _ in rows]
    for name in base:
        if name not in names:
            sys.exit(f"ARCHITECTURE.md: the table has no row of {name}")
    return [name for name, _, sees in rows if name not in base and "Core" in sees], \
        [name for name, _, sees in rows if name not in base and "Core" not in sees]


def architecture(text):
    above, beside = layers(text)

    def draw(theme):
        columns = 2
        count = -(-len(above) // columns)
        top = 74 + 38 * count
        notes = wrapped("Beside them: " + ", ".join(beside), 64)
        picture = Picture(WIDTH, top + 432 + 18 * len(notes), "The layers of Curlew: imports only go down", theme)
        picture.text(20, 36, "Products on Core, each by itself", size=16, weight="600")
        for index, name in enumerate(above):
            x, y = 20 + 224 * (index % columns), 52 + 38 * (index // columns)
            picture.box(x, y, 216, 32)
            picture.text(x + 108, y + 21, name, size=14, anchor="middle")

        def row(y, names):
            width = (WIDTH - 40 - 8 * (len(names) - 1)) / len(names)
            for index, (name, note) in enumerate(names):
                x = 20 + index * (width + 8)
                picture.box(x, y, width, 52, stroke="own")
                picture.text(x + width / 2, y + (22 if note else 31), name, size=14, anchor="middle", weight="600")
                picture.text(x + width / 2, y + 41, note, size=13, anchor="middle", color="soft")

        picture.text(20, top, "The product Curlew", size=16, weight="600")
        row(top + 14, [("Curlew", "functions on SessionManager.default, re-exports")])
        row(top + 80, [("CurlewCore", "sessions, requests, tasks, follow-ups, validation, responses")])
        row(top + 146, [("CurlewEncoding", "parameters, forms"), ("CurlewTransport", "event loops on libcurl")])
        row(top + 206, [("CurlewCache", "RFC 9111"), ("CurlewCookies", "RFC 6265bis")])
        row(top + 272, [("CurlewHTTP", "fields, URLs, errors; no I/O"), ("CCurlew", "C over libcurl")])
        picture.box(20, top + 350, WIDTH - 40, 38, fill="paper")
        picture.text(WIDTH / 2, top + 374, "libcurl · zlib · Foundation", size=14, anchor="middle", color="soft")
        for y, length in ((66, 13), (132, 13), (258, 13), (324, 25)):
            picture.arrow([(WIDTH / 2, top + y), (WIDTH / 2, top + y + length)])
        for index, line in enumerate(notes):
            picture.text(20, top + 414 + 18 * index, line, size=13, color="soft")
        return picture.svg()

    return draw


def life(theme):
    picture = Picture(WIDTH, 540, "The life of a request, from the call to its handlers", theme)
    wide = 140
    lanes = [("Caller", 12), ("Session, tasks", 170), ("Event loop", 328)]
    for name, x in lanes:
        picture.text(x + wide / 2, 32, name, anchor="middle", weight="600", size=15)

    def step(lane, y, title, *notes):
        x = lanes[lane][1]
        picture.box(x, y, wide, 28 + 17 * len(notes), stroke="own" if lane == 2 else "line")
        picture.text(x + wide / 2, y + 20, title, anchor="middle", size=14, weight="600")
        for index, note in enumerate(notes):
            picture.text(x + wide / 2, y + 38 + 17 * index, note, anchor="middle", size=13, color="soft")

    step(0, 48, "request(url)", "creates request", "and driver")
    step(1, 48, "adapt", "adapters, for", "each attempt")
    step(2, 48, "wait", "for a connection,", "by priority")
    step(2, 140, "exchange", "libcurl sends", "and receives")
    step(2, 232, "head", "cookies, redirect,", "challenge")
    step(2, 324, "body", "decoding, limits,", "backpressure")
    step(1, 324, "validate, commit", "the file gets", "its name")
    step(1, 412, "finish", "once, on every", "path")
    step(0, 412, "handlers, await", "in order;", "decode here")
    picture.arrow([(152, 79), (169, 79)])
    picture.arrow([(310, 79), (327, 79)])
    for y in (110, 202, 294):
        picture.arrow([(398, y), (398, y + 29)])
    picture.arrow([(328, 355), (311, 355)])
    picture.arrow([(240, 386), (240, 411)])
    picture.arrow([(170, 443), (153, 443)])
    picture.arrow([(328, 263), (312, 263), (312, 171), (327, 171)], color="warm", dashed=True)
    picture.text(306, 222, "follow-up", anchor="end", size=13, color="warm")
    picture.arrow([(200, 324), (200, 111)], color="warm", dashed=True)
    picture.text(192, 186, "retry, after", anchor="end", size=13, color="warm")
    picture.text(192, 203, "a delay", anchor="end", size=13, color="warm")
    note = "Cancellation, a deadline, a failed adapter and the end of the session lead to finish from every step."
    for index, line in enumerate(wrapped(note, 66)):
        picture.text(12, 502 + 18 * index, line, size=13, color="soft")
    return picture.svg()


def main():
    benchmarks = pathlib.Path("BENCHMARKS.md").read_text(encoding="utf-8")
    rows = table(benchmarks, "table")
    note = f"BENCHMARKS.md: medians of rounds; {machine(benchmarks)}. Shorter is better."
    pictures = {
        "cpu-per-request": chart(f"CPU per request: {CASE}", note, bars(rows, CASE, "CPU"), ""),
        "memory": chart(f"Peak memory: {CASE}", note, bars(rows, CASE, "Peak MiB"), "MiB"),
        "downloads": chart(f"CPU of a download: {FILE}", note, bars(rows, FILE, "CPU"), ""),
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
