#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many of the instructions in a profile of callgrind's are repeats, which a processor does not count.

callgrind counts `rep movsb`, with which glibc copies more than a few KiB, once for each byte; a processor's own counter
(`perf stat -e instructions:u`) has it once. The profile is one with --dump-instr=yes, --compress-pos=no and
--compress-strings=no.
"""

import functools
import re
import struct
import sys

# rep movs and rep stos, of bytes and of words.
REPEATING = re.compile(rb"\xf3\x48?[\xa4\xa5\xaa\xab]")
ELF_OF_64_BITS = b"\x7fELF\x02"
X86_64 = 62
LOADED = 1


def instructions(path):
    """How often each instruction was counted, by the file it is from and its address there."""
    counts = {}
    file, is_call = None, False
    with open(path, encoding="utf-8", errors="replace") as profile:
        for line in profile:
            if line.startswith("ob="):
                file = line[3:].rstrip("\n")
            elif line.startswith("calls="):
                is_call = True
            elif line.startswith("0x"):
                address, *_, count = line.split()
                # The line after a call has what the called function took.
                if not is_call:
                    place = file, int(address, 16)
                    counts[place] = counts.get(place, 0) + int(count)
                is_call = False
    return counts


@functools.cache
def segments(path):
    """The parts of a program or library that are loaded: their addresses and their bytes. None for other processors."""
    try:
        with open(path, "rb") as file:
            image = file.read()
    except OSError:
        return []
    if not image.startswith(ELF_OF_64_BITS) or struct.unpack_from("<H", image, 18) != (X86_64,):
        return []
    start, = struct.unpack_from("<Q", image, 32)
    size, number = struct.unpack_from("<HH", image, 54)
    headers = (struct.unpack_from("<IIQQQQ", image, start + index * size) for index in range(number))
    return [(address, image[offset:offset + length]) for kind, _, offset, address, _, length in headers if kind == LOADED]


def repeating(file, address):
    """The length of the instruction, if it is one that repeats itself."""
    for start, code in segments(file):
        if start <= address < start + len(code):
            found = REPEATING.match(code, address - start)
            return found and found.end() - found.start()
    return None


def main():
    counts = instructions(sys.argv[1])
    repeats = 0
    for (file, address), count in counts.items():
        length = repeating(file, address)
        if length:
            # What stands behind it was run as often as it was begun.
            repeats += count - min(count, counts.get((file, address + length), 0))
    print(repeats)


if __name__ == "__main__":
    main()
