#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of scripts/bench.

Reads lines of "case TAB program TAB JSON", in the order they were measured. A ratio is the median of the rounds' own
ratios, because a machine's speed drifts from round to round.
"""

import argparse
import json
import statistics
import sys

from goals import CASES, GOALS, LIMITS, NAMES, PROGRAMS, More, Part

HEADINGS = ("Work", "Program", "CPU", "min–max", "× floor", "Instructions", "× floor", "Per second", "Peak MiB", "Goals")


class Results:
    """What was measured, by case, program and quantity: a number for each round."""

    def __init__(self, path):
        self.measurements = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                case, program, text = line.rstrip("\n").split("\t")
                self.measurements.setdefault((case, program), []).append(json.loads(text))

    def programs(self, case):
        return [program for program in PROGRAMS if (case, program) in self.measurements]

    def values(self, case, program, quantity):
        values = (QUANTITIES[quantity](measurement) for measurement in self.measurements.get((case, program), []))
        return [value for value in values if value is not None]

    def median(self, case, program, quantity):
        values = self.values(case, program, quantity)
        return statistics.median(values) if values else None

    def ratio(self, case, program, quantity, parts, number=0):
        """How much of the parts' sum and the number it takes; None if one of them is not there."""
        own = self.values(case, program, quantity)
        columns = [[part.factor * value for value in self.values(part.case, part.program, quantity)] for part in parts]
        rounds = min([len(own), *map(len, columns)])
        limits = [sum(column[index] for column in columns) + number for index in range(rounds)]
        ratios = [value / limit for value, limit in zip(own, limits) if limit > 0]
        return statistics.median(ratios) if ratios else None


def cpu(measurement):
    """Microseconds a request, or for a whole file."""
    if "process_cpu_seconds" in measurement:
        return measurement["process_cpu_seconds"] * 1e6
    return measurement.get("cpu_us_per_request")


def waiting(measurement):
    """KiB for each request that waits."""
    if "base_rss_kib" not in measurement:
        return None
    return (measurement["peak_rss_kib"] - measurement["base_rss_kib"]) / measurement["requests"]


QUANTITIES = {
    "cpu": cpu,
    "instructions": lambda measurement: measurement.get("instructions"),
    "memory": lambda measurement: measurement.get("peak_rss_kib") or None,
    "waiting": waiting,
    "wall": lambda measurement: measurement.get("wall_seconds"),
    "rate": lambda m: m["requests"] / m["wall_seconds"] if m.get("requests") and m.get("wall_seconds") else None,
}


def digits(number):
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def time_text(microseconds):
    return f"{microseconds / 1e6:.2f} s" if microseconds >= 1e5 else f"{digits(microseconds)} µs"


def count_text(count):
    return f"{count / 1e6:,.1f} M" if count >= 1e6 else f"{count / 1e3:,.1f} k"


AMOUNTS = {"instructions": count_text, "memory": lambda kib: f"{kib / 1024:.1f}"}


def show(value, text):
    return "" if value is None else text(value)


def spread(values):
    return f"{time_text(min(values))}–{time_text(max(values))}" if len(values) > 1 else ""


def per_second(results, case, program):
    if case in ("download", "upload"):
        return show(results.median(case, program, "wall"), lambda seconds: f"{seconds:.2f} s wall")
    return show(results.median(case, program, "rate"), digits)


def memory(results, case, program):
    if case == "wait":
        return show(results.median(case, program, "waiting"), lambda size: f"{size:.1f} KiB a request")
    return show(results.median(case, program, "memory"), lambda size: f"{size / 1024:.1f}")


def verdict(results, case, program, goal):
    """The goal, whether it was reached, and what was measured in the goal's own terms."""
    ratio = results.ratio(case, program, goal.quantity, goal.parts, goal.number)
    if ratio is None:
        return f"? {goal.text}"
    if len(goal.parts) == 1 and not goal.number:
        measured = f"{ratio * goal.parts[0].factor:.2f}"
    elif goal.parts:
        measured = f"{ratio:.2f} of it"
    else:
        measured = AMOUNTS[goal.quantity](results.median(case, program, goal.quantity))
    return f"{'✓' if ratio <= 1 else '✗'} {goal.text} ({measured})"


def judged(results, case, program):
    return ", ".join(verdict(results, case, program, goal) for goal in GOALS.get((case, program), []))


def resumed(results, case, program):
    """Of connections of their own: how many resumed a session. The server answers those with 1 KiB, the others with a byte."""
    measurements = [m for m in results.measurements[case, program] if m.get("bytes")]
    if case != "cold" or not measurements:
        return ""
    shares = [(m["bytes"] / m["requests"] - 1) / 1023 for m in measurements]
    return f", {100 * statistics.median(shares):.0f} % resumed"


def name_of(case, program):
    return NAMES.get((case, program), PROGRAMS[program])


def rows(results, size):
    floor = lambda case: [Part(1, case, "floor")]
    for case, title in CASES.items():
        names = results.programs(case)
        for name in names:
            yield (
                title.replace("1 GiB", size) if name == names[0] else "",
                name_of(case, name) + resumed(results, case, name),
                show(results.median(case, name, "cpu"), time_text),
                spread(results.values(case, name, "cpu")),
                show(results.ratio(case, name, "cpu", floor(case)), "{:.2f}".format),
                show(results.median(case, name, "instructions"), count_text),
                show(results.ratio(case, name, "instructions", floor(case)), "{:.2f}".format),
                per_second(results, case, name),
                memory(results, case, name),
                judged(results, case, name),
            )


def markdown(headings, lines):
    """A table that reads well as plain text too."""
    # A column without figures is left out.
    kept = [c for c in range(len(headings)) if c < 2 or any(line[c] for line in lines)]
    table = [headings, *lines]
    widths = {c: max(len(line[c]) for line in table) for c in kept}
    align = lambda c, cell: cell.ljust(widths[c]) if c < 2 or c > 8 else cell.rjust(widths[c])
    text = ["| " + " | ".join(align(c, line[c]) for c in kept) + " |" for line in table]
    rule = "| " + " | ".join("-" * widths[c] if c < 2 or c > 8 else "-" * (widths[c] - 1) + ":" for c in kept) + " |"
    return "\n".join([text[0], rule, *text[1:]])


def summary(results):
    reached, missed = [], []
    for (case, program), goals in GOALS.items():
        for goal in goals:
            ratio = results.ratio(case, program, goal.quantity, goal.parts, goal.number)
            if ratio is not None:
                (reached if ratio <= 1 else missed).append(goal)
    return f"{len(reached)} of {len(reached) + len(missed)} goals reached."


def build_table(path):
    lines = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, text = line.rstrip("\n").split("\t")
            build = json.loads(text)
            lines.append((
                {"AsyncHTTPClient": "async-http-client"}.get(name, name),
                f"{build['wall_seconds']:.0f} s",
                f"{build['cpu_seconds']:.0f} s",
                f"{build['modules']}",
                f"{build['bytes'] / 1024 / 1024:.1f} MiB",
            ))
    return markdown(("A program on", "Clean build", "CPU of it", "Modules", "Size, stripped"), lines)


def put(path, name, text):
    """Between the comments <!-- NAME --> and <!-- end of NAME -->."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if page.count(start) != 1 or page.count(end) != 1:
        sys.exit(f"report: {path} has not one {start.strip()} and one {end}")
    head, rest = page.split(start)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{head}{start}\n{text}\n\n{end}{rest.split(end)[1]}")


def verdicts(results):
    """Each limit: the row's case and program, the limit, the least counts of the row and of what it is compared with, the verdict."""
    for (case, program), limit in LIMITS.items():
        base = results.values(limit.case, limit.program, "instructions")
        own = results.values(case, program, "instructions")
        # The least of each, because chance only adds.
        least, floor = (min(own), min(base)) if own and base else (None, None)
        if least is None:
            verdict = "not measured"
        elif isinstance(limit, More):
            verdict = "passed" if least - floor <= limit.number else "FAILED"
        else:
            verdict = "passed" if least <= floor * limit.factor else "FAILED"
        yield case, program, limit, least, floor, verdict


def check(results):
    """Prints each limit; False if one is passed, or was not measured."""
    passed = True
    for case, program, limit, least, floor, verdict in verdicts(results):
        passed = passed and verdict == "passed"
        than = name_of(limit.case, limit.program) + ("" if limit.case == case else f" {CASES[limit.case]}")
        if isinstance(limit, More):
            more = None if least is None else least - floor
            measured = f"{show(more, lambda number: f'{number / 1e3:.1f} k')} more than {than}, limit {limit.number / 1e3:.1f} k"
        else:
            ratio = None if least is None else least / floor
            measured = f"{show(ratio, lambda share: f'{share:.2f}')} × {than}, limit {limit.factor:.2f}"
        print(f"{CASES[case]}, {name_of(case, program)}: {show(least, count_text)}, {measured}: {verdict}")
    return passed


def print_failed(results):
    """Prints the rows that are past their limit, as "case program case program": the row, and what it is compared with."""
    for case, program, limit, _, _, verdict in verdicts(results):
        if verdict == "FAILED":
            print(case, program, limit.case, limit.program)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("--machine")
    parser.add_argument("--size", default="1 GiB", help="of the files, if it is another")
    parser.add_argument("--write")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--failed", action="store_true", help="print the rows past their limit, to be counted again")
    parser.add_argument("--build-time", action="store_true")
    arguments = parser.parse_args()

    if arguments.build_time:
        name, text = "build time", build_table(arguments.results)
    else:
        results = Results(arguments.results)
        if arguments.failed:
            print_failed(results)
            return
        if arguments.check:
            sys.exit(0 if check(results) else 1)
        with open(arguments.machine, encoding="utf-8") as file:
            machine = ". ".join(file.read().splitlines())
        name, text = "table", f"{machine}.\n\n{markdown(HEADINGS, list(rows(results, arguments.size)))}\n\n{summary(results)}"
    print(text)
    if arguments.write:
        put(arguments.write, name, text)


if __name__ == "__main__":
    main()
