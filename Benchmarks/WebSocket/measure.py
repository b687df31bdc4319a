# SPDX-License-Identifier: Apache-2.0
"""Measures clients of an echo, one after the other: measure.py SERVER ROUNDS NAME COMMAND… [-- NAME COMMAND…]…

For scripts/bench-websocket. Prints a table in Markdown: messages a second, CPU of the client's process for a message, start-up
included, and its largest memory; the medians of the rounds.
"""
import itertools
import os
import re
import statistics
import subprocess
import sys

CASES = [  # messages, bytes, how many at a time
    (20_000, 100, 1),
    (100_000, 100, 64),
    (20_000, 16 << 10, 16),
    (500, 1 << 20, 4),
]
LIMIT = 120


def run(command, url, case):
    """Messages a second, seconds of CPU for a message, MiB at most."""
    words = ["timeout", str(LIMIT), *command, url, *map(str, case)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    rate = re.search(r": (\d+)/s", output)
    if child.returncode or not rate:
        sys.exit(f"{' '.join(words)}: {output}")
    return int(rate[1]), (usage.ru_utime + usage.ru_stime) / case[0], usage.ru_maxrss / 1024


def main(server, rounds, *words):
    groups = [list(group) for is_break, group in itertools.groupby(words, lambda word: word == "--") if not is_break]
    clients = {group[0]: group[1:] for group in groups}
    process = subprocess.Popen([server], stdout=subprocess.PIPE, text=True)
    try:
        url = f"ws://127.0.0.1:{int(process.stdout.readline())}/"
        print("| Messages | Client | Per second | CPU µs a message | Peak MiB |\n| --- | --- | ---: | ---: | ---: |")
        for case in CASES:
            results = {name: [] for name in clients}
            for number in range(int(rounds)):
                # Every other round goes backwards.
                for name in list(clients)[:: -1 if number % 2 else 1]:
                    results[name].append(run(clients[name], url, case))
            for name, rows in results.items():
                rate, cpu, memory = (statistics.median(column) for column in zip(*rows))
                what = f"{case[0]:,} of {case[1]:,} bytes, {case[2]} at a time"
                print(f"| {what} | {name} | {rate:,.0f} | {cpu * 1e6:,.1f} | {memory:.0f} |", flush=True)
    finally:
        process.terminate()
        process.wait()


main(*sys.argv[1:])
