#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a session of the program curlew in a terminal and draws it; see scripts/recording."""

import fcntl
import html
import http.server
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading

FOLDER = pathlib.Path("Sources/Curlew/Curlew.docc/Resources")
COLUMNS, ROWS = 86, 60
THEMES = {
    "": {"paper": "#ffffff", "line": "#c9d1db", "ink": "#1d2430", "prompt": "#5b6675", "31": "#b3261e", "32": "#1a7f37", "33": "#8a6100",
         "34": "#0b5cad", "35": "#8250a8", "36": "#0b7285", "90": "#5b6675"},
    "~dark": {"paper": "#14181f", "line": "#3a4452", "ink": "#e8edf4", "prompt": "#9aa7b8", "31": "#ff8b82", "32": "#6fd68a",
              "33": "#e3c15a", "34": "#79b8ff", "35": "#d2a8ff", "36": "#6fd3e0", "90": "#9aa7b8"},
}
COMMANDS = [
    "curlew :3000/birds/7",
    "curlew -v :3000/birds name=Curlew length:=55 'tags[]=wader' X-Token:1234",
    "curlew --meta -h :3000/atlas",
    "curlew download -s 4 :3000/atlas",
    "curlew -H 'Accept: text/html' :3000/birds",
]
ATLAS = bytes(range(256)) * 65536


class Birds(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "birds/1.0", ""

    def answer(self, status, kind, body, *fields):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *fields):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        if not self.path.startswith("/atlas"):
            bird = {"id": 7, "name": "Curlew", "latin": "Numenius arquata", "length": 55, "wader": True}
            return self.answer(200, "application/json", json.dumps(bird).encode())
        fields = [("ETag", '"1"'), ("Accept-Ranges", "bytes")]
        bounds = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not bounds:
            return self.answer(200, "application/octet-stream", ATLAS, *fields)
        first, last = int(bounds[1]), min(int(bounds[2] or len(ATLAS)), len(ATLAS) - 1)
        fields.append(("Content-Range", f"bytes {first}-{last}/{len(ATLAS)}"))
        return self.answer(206, "application/octet-stream", ATLAS[first:last + 1], *fields)

    def do_POST(self):
        bird = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(201, "application/json", json.dumps({"id": 8, **bird}).encode(), ("Location", "/birds/8"))

    def log_message(self, *words):
        pass


def run(command, program, folder):
    """The output of a command in a terminal of its own."""
    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": folder, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        ["bash", "-c", command], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment, start_new_session=True)
    os.close(terminal)
    output = b""
    while True:
        try:
            piece = os.read(own, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(own)
    process.wait(timeout=10)
    return output.decode()


def screen(text):
    """What stands in the terminal: a list of characters with their colours for each line."""
    lines, column, color, bold = [[]], 0, "ink", False
    for match in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|\t|.", text, re.S):
        word = match[0]
        if match[2] == "m":
            for code in (match[1] or "0").split(";"):
                color, bold = ("ink", False) if code == "0" else (color, True) if code == "1" else (code, bold)
        elif match[2] == "K":
            del lines[-1][column:]
        elif match[2] == "A":
            raise SystemExit("recording: the output moves the cursor up, which can't be drawn")
        elif match[2]:
            pass
        elif word == "\r":
            column = 0
        elif word == "\n":
            lines.append([])
            column = 0
        else:
            if column == COLUMNS:
                lines.append([])
                column = 0
            line = lines[-1]
            line.extend([(" ", "ink", False)] * (column - len(line)))
            line[column:column + 1] = [(word, color, bold)]
            column += 1
    return lines


def draw(lines, theme):
    advance, height, margin = 8.43, 19, 18
    width, total = COLUMNS * advance + 2 * margin, len(lines) * height + 2 * margin
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {total}" width="{width:.0f}" height="{total}" role="img" '
        "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">",
        "<title>A session of the program curlew in a terminal</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{total - 1}" rx="8" fill="{theme["paper"]}" stroke="{theme["line"]}"/>']
    for number, line in enumerate(lines):
        start = 0
        while start < len(line):
            _, color, bold = line[start]
            end = start
            while end < len(line) and line[end][1:] == (color, bold):
                end += 1
            run_of = "".join(cell[0] for cell in line[start:end])
            if run_of.strip():
                # Each run has its own length, so that a font of another width changes no column.
                weight = ' font-weight="bold"' if bold else ""
                shapes.append(
                    f'<text x="{margin + start * advance:.1f}" y="{margin + (number + 0.75) * height:.1f}" xml:space="preserve" '
                    f'textLength="{(end - start) * advance:.1f}" lengthAdjust="spacingAndGlyphs" '
                    f'fill="{theme.get(color, theme["ink"])}"{weight}>{html.escape(run_of, quote=False)}</text>')
            start = end
    return "\n".join([*shapes, "</svg>"]) + "\n"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 3000), Birds)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            output = screen(run(command, program, folder))
            while output and not output[-1]:
                output.pop()
            prompt = screen("$ " + command)
            prompt[0][0] = ("$", "prompt", False)
            lines += [*prompt, *output, []]
    server.shutdown()
    lines.pop()
    for name, theme in THEMES.items():
        (FOLDER / f"terminal{name}.svg").write_text(draw(lines, theme))
    print(f"{len(lines)} lines of {COLUMNS} columns")


main()
