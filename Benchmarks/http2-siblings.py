#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what becomes of transfers that share an HTTP/2 connection when that ends, with one libcurl after the other.

    python3 Benchmarks/http2-siblings.py [LIBCURL ...]     a path each, such as that of the `pycurl` wheel's; the system's by default

Three GETs share a connection. The server lets the connection end without an answer, or after GOAWAY, or after it has answered the first. A
transfer that has not completed after 4 seconds hangs: only its own time limit ends it. RELIABILITY.md says what follows from it.
"""

import ctypes
import itertools
import os
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 4
DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
# Of curl.h.
URL, WRITEFUNCTION, WRITEDATA, VERIFYPEER, VERIFYHOST, HTTP_VERSION, PIPEWAIT, PROXY = 10002, 20011, 10001, 64, 81, 84, 237, 10004
PIPELINING, MULTIPLEX, HTTP_2_TLS, SOCKETFUNCTION, TIMERFUNCTION = 3, 2, 4, 20001, 20004
SOCKET_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
TIMER_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p)


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def exactly(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError
        data += piece
    return data


def serve(connection, case, is_first):
    """On the first connection a request is answered, so that the next three find a connection to share; on others, all are."""
    exactly(connection, 24)
    connection.sendall(frame(SETTINGS, 0, 0))
    streams = []
    while True:
        head = exactly(connection, 9)
        exactly(connection, int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == SETTINGS and not flags & 1:
            connection.sendall(frame(SETTINGS, 1, 0))
        if kind != HEADERS:
            continue
        streams.append(stream)
        if len(streams) == 1 or not is_first:
            # ":status: 200" is entry 8 of HPACK's static table.
            connection.sendall(frame(HEADERS, 5, stream, b"\x88"))
        if len(streams) == 4 and is_first:
            if "bodies" in case:
                for open_stream in streams[1:]:
                    connection.sendall(frame(HEADERS, 4, open_stream, b"\x88") + frame(DATA, 0, open_stream, b"begun"))
                time.sleep(0.05)
            if "goaway" in case:
                connection.sendall(frame(GOAWAY, 0, 0, streams[1].to_bytes(4, "big") + bytes(4)))
            if case in ("goaway", "first answered"):
                connection.sendall(frame(HEADERS, 5, streams[1], b"\x88"))
            time.sleep(0.05)
            return


def server(context, case):
    listener = socket.create_server(("127.0.0.1", 0))
    count = itertools.count()

    def run():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(plain,), daemon=True).start()

    def answer(plain):
        try:
            with context.wrap_socket(plain, server_side=True) as connection:
                serve(connection, case, next(count) == 0)
        except (OSError, ConnectionError):
            pass

    threading.Thread(target=run, daemon=True).start()
    return listener


class Message(ctypes.Structure):
    _fields_ = [("msg", ctypes.c_int), ("easy", ctypes.c_void_p), ("result", ctypes.c_int)]


def load(path):
    curl = ctypes.CDLL(path)
    for name in ("curl_easy_init", "curl_multi_init"):
        getattr(curl, name).restype = ctypes.c_void_p
    curl.curl_multi_info_read.restype = ctypes.POINTER(Message)
    curl.curl_version.restype = ctypes.c_char_p
    return curl


@ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
def discard(_, size, count, __):
    return size * count


def transfer(curl, multi, url):
    easy = ctypes.c_void_p(curl.curl_easy_init())
    for option, value in ((URL, url), (PROXY, b""), (WRITEFUNCTION, discard)):
        curl.curl_easy_setopt(easy, option, value)
    for option, value in ((VERIFYPEER, 0), (VERIFYHOST, 0), (HTTP_VERSION, HTTP_2_TLS), (PIPEWAIT, 1)):
        curl.curl_easy_setopt(easy, option, ctypes.c_long(value))
    curl.curl_multi_add_handle(multi, easy)
    return easy.value


class Events:
    """Drives a multi handle by the events of sockets, as Curlew does: libcurl runs only the transfers that an event or a timer concerns."""

    def __init__(self, curl, multi):
        self.curl, self.multi, self.poll, self.deadline = curl, multi, select.poll(), None
        self.callbacks = (SOCKET_CALLBACK(self.socket_changed), TIMER_CALLBACK(self.timer_changed))
        curl.curl_multi_setopt(multi, SOCKETFUNCTION, self.callbacks[0])
        curl.curl_multi_setopt(multi, TIMERFUNCTION, self.callbacks[1])

    def socket_changed(self, _, descriptor, what, __, ___):
        mask = {1: select.POLLIN, 2: select.POLLOUT, 3: select.POLLIN | select.POLLOUT}.get(what)
        if mask:
            self.poll.register(descriptor, mask)
        else:
            try:
                self.poll.unregister(descriptor)
            except KeyError:
                pass
        return 0

    def timer_changed(self, _, milliseconds, __):
        self.deadline = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000
        return 0

    def turn(self):
        running = ctypes.c_int()
        for descriptor, found in self.poll.poll(20):
            mask = (1 if found & (select.POLLIN | select.POLLHUP) else 0) | (2 if found & select.POLLOUT else 0)
            self.curl.curl_multi_socket_action(self.multi, descriptor, mask, ctypes.byref(running))
        if self.deadline is not None and self.deadline <= time.monotonic():
            self.deadline = None
            self.curl.curl_multi_socket_action(self.multi, -1, 0, ctypes.byref(running))


def finish(curl, multi, events, names, start):
    """The result of each transfer, and when it came; None for those that hang."""
    results = dict.fromkeys(names.values())
    left = ctypes.c_int()
    while time.monotonic() - start < LIMIT and None in results.values():
        events.turn()
        while message := curl.curl_multi_info_read(multi, ctypes.byref(left)):
            results[names[message.contents.easy]] = (message.contents.result, time.monotonic() - start)
    return results


def attempt(curl, context, case):
    listener = server(context, case)
    url = b"https://127.0.0.1:%d/" % listener.getsockname()[1]
    multi = ctypes.c_void_p(curl.curl_multi_init())
    curl.curl_multi_setopt(multi, PIPELINING, ctypes.c_long(MULTIPLEX))
    events = Events(curl, multi)
    finish(curl, multi, events, {transfer(curl, multi, url): 0}, time.monotonic())
    results = finish(curl, multi, events, {transfer(curl, multi, url): number for number in (1, 2, 3)}, time.monotonic())
    listener.close()
    return ", ".join("hangs" if r is None else f"{r[0]} after {r[1]:.1f} s" for r in results.values())


def secure_context(directory):
    """The TLS context of a server that negotiates HTTP/2, with a certificate of its own."""
    key, certificate = os.path.join(directory, "key"), os.path.join(directory, "certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-days", "1",
         "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    return context


def main():
    with tempfile.TemporaryDirectory() as directory:
        context = secure_context(directory)
        for path in sys.argv[1:] or ["libcurl.so.4"]:
            curl = load(path)
            print(curl.curl_version().decode().split()[0])
            for case in ("close", "goaway", "first answered", "close in bodies", "goaway and close in bodies"):
                print(f"    {case}: {attempt(curl, context, case)}")


if __name__ == "__main__":
    main()
