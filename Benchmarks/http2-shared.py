#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for what breaks when transfers share an HTTP/2 connection, with one libcurl after the other.

    python3 Benchmarks/http2-shared.py [LIBCURL ...]     a path each, such as that of the `pycurl` wheel's; the system's by default

Each case runs three times (REPEATS), and prints `BROKEN` with the reason if a transfer hangs, has a wrong body or succeeds without its
whole body, or if libcurl wants to be called all the time while it has nothing to do. CASE selects cases by a part of their names. Transfers
are driven by the events of sockets, as Curlew drives them. `http2-siblings.py` has more cases in which the connection ends. RELIABILITY.md
says what follows.
"""

import ctypes
import importlib.util
import os
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("siblings", os.path.join(HERE, "http2-siblings.py"))
siblings = importlib.util.module_from_spec(spec)
spec.loader.exec_module(siblings)
frame, exactly = siblings.frame, siblings.exactly

LIMIT = 4
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
END_STREAM, END_HEADERS = 1, 4
# Of curl.h.
READFUNCTION, UPLOAD, INFILESIZE_LARGE = 20012, 46, 30115
PAUSE_WRITE, PAUSE_READ, PAUSE_CONT = 0x10000001, 0x10000001, 0
BODY = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)


def content(number, count):
    """The body of a transfer: each differs from the others in every block."""
    block = (b"%08d:" % number) * 100
    return (block * (count // len(block) + 1))[:count]


class Server:
    """Serves one case: `answer(self, connection, streams)` runs when `expected` requests have come; others are answered at once."""

    def __init__(self, context, expected, answer, grants=True):
        self.context, self.expected, self.answer, self.grants = context, expected, answer, grants
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.received = {}
        self.lock = threading.Lock()
        self.connections = 0
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return b"https://127.0.0.1:%d/" % self.listener.getsockname()[1]

    def accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(plain, self.connections == 1), daemon=True).start()

    def send(self, connection, data):
        with self.lock:
            connection.sendall(data)

    def head(self, length=None, end=False):
        block = b"\x88"
        if length is not None:
            text = str(length).encode()
            block += b"\x0f\x0d" + bytes([len(text)]) + text
        return lambda stream: frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)

    def body(self, stream, data, end=True):
        pieces = [data[at:at + 16_384] for at in range(0, len(data), 16_384)] or [b""]
        return b"".join(frame(DATA, END_STREAM if end and i == len(pieces) - 1 else 0, stream, p) for i, p in enumerate(pieces))

    def serve(self, plain, is_first):
        try:
            with self.context.wrap_socket(plain, server_side=True) as connection:
                self.read(connection, is_first)
        except (OSError, ConnectionError):
            pass

    def read(self, connection, is_first):
        exactly(connection, 24)
        self.send(connection, frame(SETTINGS, 0, 0))
        streams = []
        while True:
            head = exactly(connection, 9)
            payload = exactly(connection, int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == SETTINGS and not flags & 1:
                self.send(connection, frame(SETTINGS, 1, 0))
            if kind == DATA:
                self.received[stream] = self.received.get(stream, b"") + payload
                if self.grants and payload:
                    size = len(payload).to_bytes(4, "big")
                    self.send(connection, frame(WINDOW_UPDATE, 0, 0, size) + frame(WINDOW_UPDATE, 0, stream, size))
            if kind != HEADERS:
                continue
            streams.append(stream)
            if len(streams) == 1 or not is_first:
                self.send(connection, self.head(0, True)(stream))
            elif len(streams) == self.expected + 1:
                threading.Thread(target=self.run, args=(connection, streams[1:]), daemon=True).start()

    def run(self, connection, streams):
        try:
            self.answer(self, connection, streams)
        except (OSError, ConnectionError):
            pass


class Client:
    """Transfers over one multi handle."""

    def __init__(self, curl, url):
        self.curl, self.url = curl, url
        self.multi = ctypes.c_void_p(curl.curl_multi_init())
        curl.curl_multi_setopt(self.multi, siblings.PIPELINING, ctypes.c_long(siblings.MULTIPLEX))
        self.events = siblings.Events(curl, self.multi)
        self.numbers, self.bodies, self.results, self.kept, self.uploaded = {}, {}, {}, [], 0
        self.paused, self.resumed, self.turns = set(), set(), 0

    def start(self, number, upload=None, pauses_at=None, holds=None):
        easy = siblings.transfer(self.curl, self.multi, self.url + b"%d" % number)
        self.numbers[easy], self.bodies[number] = number, b""

        def write(data, size, count, _):
            if number in self.paused:
                return PAUSE_WRITE
            self.bodies[number] += ctypes.string_at(data, size * count)
            if pauses_at is not None and len(self.bodies[number]) >= pauses_at and number not in self.resumed:
                self.paused.add(number)
            return size * count

        self.set(easy, siblings.WRITEFUNCTION, BODY(write))
        if upload is not None:
            position = [0]

            def read(buffer, size, count, _):
                if holds is not None and holds():
                    return PAUSE_READ
                piece = upload[position[0]:position[0] + size * count]
                ctypes.memmove(buffer, piece, len(piece))
                position[0] += len(piece)
                self.uploaded += len(piece)
                return len(piece)

            self.set(easy, READFUNCTION, BODY(read))
            self.curl.curl_easy_setopt(ctypes.c_void_p(easy), UPLOAD, ctypes.c_long(1))
            self.curl.curl_easy_setopt(ctypes.c_void_p(easy), INFILESIZE_LARGE, ctypes.c_longlong(len(upload)))
        return easy

    def set(self, easy, option, callback):
        self.kept.append(callback)
        self.curl.curl_easy_setopt(ctypes.c_void_p(easy), option, callback)

    def run(self, until=None, seconds=LIMIT):
        """Runs until all transfers have ended, a condition holds, or no byte has come for that long."""
        start, progress, left = time.monotonic(), 0, ctypes.c_int()
        while time.monotonic() - start < seconds and len(self.results) < len(self.numbers) and not (until and until()):
            self.events.turn()
            self.turns += 1
            if (current := len(self.results) + sum(map(len, self.bodies.values())) + self.uploaded) != progress:
                start, progress = time.monotonic(), current
            while message := self.curl.curl_multi_info_read(self.multi, ctypes.byref(left)):
                self.results[self.numbers[message.contents.easy]] = message.contents.result

    def resume(self, easy):
        self.paused.discard(self.numbers[easy])
        self.resumed.add(self.numbers[easy])
        self.curl.curl_easy_pause(ctypes.c_void_p(easy), PAUSE_CONT)

    def cancel(self, easy):
        self.curl.curl_multi_remove_handle(self.multi, ctypes.c_void_p(easy))
        self.results[self.numbers[easy]] = "cancelled"


def begin(curl, context, expected, answer, grants=True):
    """A client whose first request has made the connection that the others share."""
    server = Server(context, expected, answer, grants)
    client = Client(curl, server.url)
    client.start(0)
    client.run()
    return server, client


def verdict(client, lengths, failing=()):
    """What is wrong with the ends of transfers that should have bodies of these lengths; those that fail have to."""
    for number, length in lengths.items():
        result = client.results.get(number, "hang")
        if result == "hang":
            return f"transfer {number} hangs with {len(client.bodies[number])} bytes"
        if number in failing:
            if result == 0:
                return f"transfer {number} succeeds with {len(client.bodies[number])} bytes, and was cut"
        elif result != 0:
            return f"transfer {number} fails with {result}"
        elif client.bodies[number] != content(number, length):
            return f"transfer {number} has a wrong body of {len(client.bodies[number])} bytes"
    return None


def bodies(count, length, known=True):
    def case(curl, context):
        def answer(server, connection, streams):
            for number, stream in enumerate(streams, 1):
                server.send(connection, server.head(length if known else None)(stream))
            # Interleaved, a frame of each in turn.
            for at in range(0, length, 16_384):
                for number, stream in enumerate(streams, 1):
                    piece = content(number, length)[at:at + 16_384]
                    server.send(connection, frame(DATA, END_STREAM if at + 16_384 >= length else 0, stream, piece))

        server, client = begin(curl, context, count, answer)
        for number in range(1, count + 1):
            client.start(number)
        client.run()
        return verdict(client, {number: length for number in range(1, count + 1)})

    return case


def paused(length, pauses_at):
    """One of four streams pauses until the others have ended."""
    def case(curl, context):
        def answer(server, connection, streams):
            for stream in streams:
                server.send(connection, server.head(length)(stream))
            for at in range(0, length, 16_384):
                for number, stream in enumerate(streams, 1):
                    piece = content(number, length)[at:at + 16_384]
                    server.send(connection, frame(DATA, END_STREAM if at + 16_384 >= length else 0, stream, piece))

        server, client = begin(curl, context, 4, answer)
        held = client.start(1, pauses_at=pauses_at)
        for number in (2, 3, 4):
            client.start(number)
        client.run(until=lambda: all(number in client.results for number in (2, 3, 4)))
        if missing := [number for number in (2, 3, 4) if number not in client.results]:
            return f"transfers {missing} hang while another is paused"
        client.resume(held)
        client.run()
        return verdict(client, {number: length for number in (1, 2, 3, 4)})

    return case


def sibling_reset(curl, context):
    """Of eight streams in the middle of their bodies, one is reset, and half a second later the others are completed."""
    def answer(server, connection, streams):
        for number, stream in enumerate(streams, 1):
            server.send(connection, server.head()(stream) + server.body(stream, content(number, 20_000)[:10_000], end=False))
        server.send(connection, frame(RST_STREAM, 0, streams[0], (2).to_bytes(4, "big")))
        time.sleep(0.5)
        for number, stream in enumerate(streams[1:], 2):
            server.send(connection, server.body(stream, content(number, 20_000)[10_000:]))

    server, client = begin(curl, context, 8, answer)
    for number in range(1, 9):
        client.start(number)
    client.run()
    return verdict(client, dict.fromkeys(range(1, 9), 20_000), failing=(1,))


def cancelled(length):
    """Half of eight transfers are cancelled in the middle of their bodies, and the others are completed."""
    def case(curl, context):
        gate = threading.Event()

        def answer(server, connection, streams):
            for number, stream in enumerate(streams, 1):
                half = content(number, length)[:length // 2]
                server.send(connection, server.head()(stream) + server.body(stream, half, end=False))
            gate.wait(LIMIT)
            for number, stream in enumerate(streams, 1):
                server.send(connection, server.body(stream, content(number, length)[length // 2:]))

        server, client = begin(curl, context, 8, answer)
        easies = {number: client.start(number) for number in range(1, 9)}
        client.run(until=lambda: all(len(client.bodies[number]) >= length // 2 for number in easies))
        for number in (1, 3, 5, 7):
            client.cancel(easies[number])
        gate.set()
        client.run()
        return verdict(client, dict.fromkeys((2, 4, 6, 8), length))

    return case


def goaway(curl, context):
    """GOAWAY names the second of four streams as the last; two are completed, the others have to be repeated or fail."""
    def answer(server, connection, streams):
        server.send(connection, frame(GOAWAY, 0, 0, streams[1].to_bytes(4, "big") + bytes(4)))
        time.sleep(0.2)
        for number, stream in enumerate(streams[:2], 1):
            server.send(connection, server.head()(stream) + server.body(stream, content(number, 30_000)))

    server, client = begin(curl, context, 4, answer)
    for number in range(1, 5):
        client.start(number)
    client.run()
    hanging = [number for number in range(1, 5) if number not in client.results]
    return f"transfers {hanging} hang" if hanging else verdict(client, {1: 30_000, 2: 30_000})


def closed_in_bodies(curl, context):
    """The connection ends in the middle of eight bodies of unknown length, one of which is complete."""
    def answer(server, connection, streams):
        for number, stream in enumerate(streams, 1):
            server.send(connection, server.head()(stream) + server.body(stream, content(number, 30_000), end=number == 4))
        time.sleep(0.2)
        connection.shutdown(socket.SHUT_RDWR)

    server, client = begin(curl, context, 8, answer)
    for number in range(1, 9):
        client.start(number)
    client.run()
    return verdict(client, dict.fromkeys(range(1, 9), 30_000), failing=(1, 2, 3, 5, 6, 7, 8))


def closed_at_once(curl, context):
    """As before, but the last bytes and the end arrive together, and nothing is read in between."""
    def answer(server, connection, streams):
        data = b"".join(
            server.head()(stream) + server.body(stream, content(number, 12_000), end=number == 4)
            for number, stream in enumerate(streams, 1))
        server.send(connection, data)
        connection.unwrap()

    server, client = begin(curl, context, 8, answer)
    for number in range(1, 9):
        client.start(number)
    client.run()
    return verdict(client, dict.fromkeys(range(1, 9), 12_000), failing=(1, 2, 3, 5, 6, 7, 8))


def uploads(count, length, delay=0.0):
    """Uploads whose sum exceeds the connection's window, which the server grants only after a delay."""
    def case(curl, context):
        spent = []

        def answer(server, connection, streams):
            time.sleep(delay)
            server.grants = True
            for stream in [0] + streams:
                server.send(connection, frame(WINDOW_UPDATE, 0, stream, (10_000_000).to_bytes(4, "big")))
            end = time.monotonic() + LIMIT
            while time.monotonic() < end and any(len(server.received.get(stream, b"")) < length for stream in streams):
                time.sleep(0.01)
            for number, stream in enumerate(streams, 1):
                whole = server.received.get(stream, b"") == content(number, length)
                server.send(connection, server.head(end=True)(stream) if whole else frame(RST_STREAM, 0, stream, bytes(4)))

        server, client = begin(curl, context, count, answer, grants=delay == 0)
        for number in range(1, count + 1):
            client.start(number, upload=content(number, length))
        if delay:
            client.run(seconds=delay / 3)
            before = client.turns
            client.run(seconds=delay / 3)
            spent.append(client.turns - before)
        client.run()
        failed = verdict(client, dict.fromkeys(range(1, count + 1), 0))
        # A turn that nothing wakes takes 20 ms.
        if not failed and spent and spent[0] > 100:
            return f"libcurl is woken {spent[0]} times in {delay / 3:.1f} s while it waits for the window"
        return failed

    return case


def held_upload(length):
    """An upload whose bytes are not available yet, beside three downloads and three uploads; then they are."""
    def case(curl, context):
        hold = [True]

        def answer(server, connection, streams):
            for number, stream in enumerate(streams, 1):
                if number in (2, 3, 4):
                    server.send(connection, server.head(length)(stream) + server.body(stream, content(number, length)))
            end = time.monotonic() + LIMIT
            waiting = {number: stream for number, stream in enumerate(streams, 1) if number not in (2, 3, 4)}
            while waiting and time.monotonic() < end:
                for number, stream in list(waiting.items()):
                    if server.received.get(stream, b"") == content(number, length):
                        server.send(connection, server.head(end=True)(stream))
                        del waiting[number]
                time.sleep(0.01)

        server, client = begin(curl, context, 7, answer)
        held = client.start(1, upload=content(1, length), holds=lambda: hold[0])
        for number in (2, 3, 4):
            client.start(number)
        for number in (5, 6, 7):
            client.start(number, upload=content(number, length))
        client.run(until=lambda: all(number in client.results for number in range(2, 8)))
        if missing := [number for number in range(2, 8) if number not in client.results]:
            return f"transfers {missing} hang while an upload waits for its bytes"
        hold[0] = False
        client.resume(held)
        client.run()
        return verdict(client, {1: 0, 2: length, 3: length, 4: length, 5: 0, 6: 0, 7: 0})

    return case


def refused(curl, context):
    """Four of eight uploads are answered early, and reset with NO_ERROR, as a server does that wants no body."""
    def answer(server, connection, streams):
        for number, stream in enumerate(streams, 1):
            if number % 2:
                server.send(connection, server.head(end=True)(stream) + frame(RST_STREAM, 0, stream, bytes(4)))
        end = time.monotonic() + LIMIT
        waiting = {number: stream for number, stream in enumerate(streams, 1) if number % 2 == 0}
        while waiting and time.monotonic() < end:
            for number, stream in list(waiting.items()):
                if server.received.get(stream, b"") == content(number, 50_000):
                    server.send(connection, server.head(end=True)(stream))
                    del waiting[number]
            time.sleep(0.01)

    server, client = begin(curl, context, 8, answer)
    for number in range(1, 9):
        client.start(number, upload=content(number, 50_000))
    client.run()
    hanging = [number for number in range(1, 9) if number not in client.results]
    return f"transfers {hanging} hang" if hanging else verdict(client, dict.fromkeys((2, 4, 6, 8), 0))


CASES = {
    "64 bodies of 1 KiB": bodies(64, 1_000),
    "64 bodies of 1 KiB of unknown length": bodies(64, 1_000, known=False),
    "64 bodies of 60 KiB of unknown length": bodies(64, 60_000, known=False),
    "16 bodies of 1 MiB": bodies(16, 1 << 20),
    "one of 4 streams of 30 KiB paused at its begin": paused(30_000, 0),
    "one of 4 streams of 4 MiB paused": paused(4 << 20, 1),
    "a sibling is reset": sibling_reset,
    "half of 8 transfers of 2 KiB are cancelled": cancelled(2_000),
    "half of 8 transfers of 40 KiB are cancelled": cancelled(40_000),
    "GOAWAY in the middle": goaway,
    "the connection ends in 8 bodies": closed_in_bodies,
    "bodies and the connection's end at once": closed_at_once,
    "8 uploads of 50 KiB": uploads(8, 50_000),
    "4 uploads of 40 KiB beyond the connection's window": uploads(4, 40_000, delay=1.5),
    "an upload of 160 KiB beyond the window": uploads(1, 160_000, delay=1.5),
    "an upload of 50 KiB waits for its bytes": held_upload(50_000),
    "uploads are refused": refused,
}


def main():
    only = os.environ.get("CASE", "")
    repeats = int(os.environ.get("REPEATS", "3"))
    with tempfile.TemporaryDirectory() as directory:
        context = siblings.secure_context(directory)
        for path in sys.argv[1:] or ["libcurl.so.4"]:
            curl = siblings.load(path)
            print(curl.curl_version().decode().split()[0], flush=True)
            for name, case in CASES.items():
                if only in name:
                    found = [case(curl, context) for _ in range(repeats)]
                    broken = [reason for reason in found if reason]
                    print(f"    {name}: " + (f"BROKEN {len(broken)} of {repeats}: {broken[0]}" if broken else "well"), flush=True)


if __name__ == "__main__":
    main()
