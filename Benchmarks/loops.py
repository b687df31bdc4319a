#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two event loops with one, from the results of `scripts/bench --loops`: ratios of runs that followed each other."""

import json
import re
import statistics
import sys

LINE = re.compile(r"(\S+) (\d+) (\d+) (\{.*\}) ?(?:loops: (.*))?$")
COUNT = re.compile(r"(\S+) instructions (\d+) (\d+)$")


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    runs = {}
    counts = {}
    for line in open(sys.argv[1]):
        if counted := COUNT.match(line):
            counts[counted[1], int(counted[2])] = int(counted[3])
            continue
        scheme, number, loops, result, times = LINE.match(line).groups()
        runs.setdefault(scheme, {}).setdefault(int(number), {})[int(loops)] = (json.loads(result), times)
    print("| URLs    | two loops: wall time | their processor time | their instructions | the busier loop     | one loop: wall time |")
    print("| :------ | :------------------- | :------------------- | :----------------- | :------------------ | :------------------ |")
    for scheme, rounds in runs.items():
        pairs = [(r[1][0], r[2][0]) for r in rounds.values()]
        wall = spread([two["wall_seconds"] / one["wall_seconds"] for one, two in pairs])
        cpu = spread([two["cpu_seconds"] / one["cpu_seconds"] for one, two in pairs])
        seconds = [[float(time) for time in r[2][1].split()] for r in rounds.values()]
        balance = spread([max(times) / min(times) for times in seconds])
        base = statistics.median(one["wall_seconds"] for one, _ in pairs)
        work = f"{counts[scheme, 2] / counts[scheme, 1]:.3f}"
        print(f"| {scheme:<7} | {wall:<20} | {cpu:<20} | {work:<18} | {balance:<19} | {base:.2f} s{'':<13} |")


if __name__ == "__main__":
    main()
