#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A room for a chat over WebSocket (RFC 6455): tells each text to all who are there. Prints its URL. Without fragments and extensions."""

import asyncio
import base64
import hashlib
import struct

members = set()


def frame(opcode, payload):
    assert len(payload) < 1 << 16
    length = bytes([len(payload)]) if len(payload) < 126 else b"\x7e" + struct.pack("!H", len(payload))
    return bytes([0x80 | opcode]) + length + payload


async def receive(reader):
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
    mask = await reader.readexactly(4)
    return first & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(await reader.readexactly(length)))


async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = (line.partition(": ") for line in head.split("\r\n")[1:])
    fields = {name.lower(): value for name, _, value in lines}
    key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    writer.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat.v1\r\n\r\n".encode()
    )
    members.add(writer)
    try:
        while True:
            opcode, payload = await receive(reader)
            if opcode == 8:
                writer.write(frame(8, payload[:2]))
                break
            if opcode == 9:
                writer.write(frame(10, payload))
            if opcode in (1, 2):
                for member in members:
                    member.write(frame(opcode, payload))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    members.discard(writer)
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await server.serve_forever()


asyncio.run(main())
