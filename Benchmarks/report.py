#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table of scripts/bench.

Reads lines of "case TAB program TAB JSON", in the order they were measured. The ratio to the floor is the median of the
rounds' own ratios, because a machine's speed drifts from round to round.
"""

import json
import statistics
import sys

HEADINGS = ("", "", "median", "min–max", "× floor", "per second", "peak MiB")


def read(path):
    """Returns {case: {program: [measurement, ...]}} in the order of the file."""
    cases = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            case, program, text = line.rstrip("\n").split("\t")
            cases.setdefault(case, {}).setdefault(program, []).append(json.loads(text))
    return cases


def cost(measurement):
    """What is compared, and its unit."""
    if "instructions" in measurement:
        count = measurement["instructions"]
        return (count / 1e3, "k instr.")
    if "process_cpu_seconds" in measurement:
        return (measurement["process_cpu_seconds"], "s CPU")
    return (measurement["cpu_us_per_request"], "µs CPU")


def digits(number):
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def ratio(measurements, floor):
    pairs = [(cost(own)[0], cost(base)[0]) for own, base in zip(measurements, floor)]
    ratios = [own / base for own, base in pairs if base > 0]
    return f"{statistics.median(ratios):.2f}" if ratios else ""


def rate(measurements):
    """Requests or GiB a second; says little on a shared machine."""
    rates = []
    for measurement in measurements:
        if measurement.get("requests") and measurement.get("wall_seconds"):
            rates.append(measurement["requests"] / measurement["wall_seconds"])
    if rates:
        return digits(statistics.median(rates))
    walls = [m["wall_seconds"] for m in measurements if "wall_seconds" in m]
    return f"{statistics.median(walls):.2f} s wall" if walls else ""


def memory(measurements):
    peaks = [m["peak_rss_kib"] / 1024 for m in measurements if "peak_rss_kib" in m]
    return f"{statistics.median(peaks):.1f}" if peaks else ""


def rows(cases):
    for case, programs in cases.items():
        names = sorted(programs, key=["floor", "curl", "curlew", "handlers"].index)
        for name in names:
            measurements = programs[name]
            costs = [cost(measurement)[0] for measurement in measurements]
            yield (
                case if name == names[0] else "",
                {"curl": "curl command", "handlers": "curlew, handlers"}.get(name, name),
                f"{digits(statistics.median(costs))} {cost(measurements[0])[1]}",
                f"{digits(min(costs))}–{digits(max(costs))}",
                ratio(measurements, programs.get("floor", [])),
                rate(measurements),
                memory(measurements),
            )


def main():
    cases = read(sys.argv[1])
    everything = [m for programs in cases.values() for measurements in programs.values() for m in measurements]
    versions = sorted({m["libcurl"] for m in everything if "libcurl" in m})
    table = [HEADINGS, *rows(cases)]
    # A case without figures for a column leaves the column out of the table.
    kept = [column for column in range(len(HEADINGS)) if column < 2 or any(row[column] for row in table[1:])]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    if versions:
        print(f"libcurl {', '.join(versions)}")
    for row in table:
        cells = [row[c].ljust(widths[c]) if c < 2 else row[c].rjust(widths[c]) for c in kept]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    main()
