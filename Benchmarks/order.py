#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the functions that each request of a profiled run goes through, in the order of their addresses, for a linker.

    valgrind --tool=callgrind --dump-instr=yes --compress-pos=no --compress-strings=no --demangle=no \\
        --callgrind-out-file=profile PROGRAM ...
    Benchmarks/order.py profile 1000 >order.txt

The number is that of the run's requests: a function is printed if one of its instructions ran at least half as often. The linker then puts
these functions side by side (`--symbol-ordering-file` of lld), if each has a section of its own.
"""

import re
import sys


def functions(path, least):
    """The names of functions with an instruction that ran at least so often, by their lowest such address."""
    first = {}
    name, is_call = None, False
    with open(path, encoding="utf-8", errors="replace") as profile:
        for line in profile:
            if line.startswith("fn="):
                # Recursive calls have a number behind the name; code without a symbol has an address for a name.
                name = re.sub(r"'\d+$", "", line[3:].rstrip("\n"))
            elif line.startswith("calls="):
                is_call = True
            elif line.startswith("0x"):
                address, *_, count = line.split()
                # The line after a call has what the called function took.
                if not is_call and int(count) >= least and not name.startswith("0x"):
                    first[name] = min(first.get(name, 1 << 64), int(address, 16))
                is_call = False
    return sorted(first, key=first.get)


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdecimal() or int(sys.argv[2]) == 0:
        sys.exit(__doc__)
    names = functions(sys.argv[1], (int(sys.argv[2]) + 1) // 2)
    if not names:
        sys.exit(f"order: {sys.argv[1]} has no function that ran so often; was it made with --dump-instr=yes and --compress-pos=no?")
    print("\n".join(names))


if __name__ == "__main__":
    main()
