# SPDX-License-Identifier: Apache-2.0
"""What `curlew-kit websocket-echo` does, with Python's websockets: echo.py URL COUNT SIZE WINDOW."""
import asyncio
import sys
import time

import websockets


async def main(url, count, size, window):
    message = bytes(index & 255 for index in range(size))
    async with websockets.connect(url, compression=None, max_size=64 << 20) as socket:
        start = time.monotonic()
        sent = 0
        for received in range(count):
            while sent < count and sent - received < window:
                await socket.send(message)
                sent += 1
            if await socket.recv() != message:
                sys.exit("another message came back")
        print(f"{count} messages of {size} bytes, {window} at a time: {int(count / (time.monotonic() - start))}/s")


asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
