// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Standard input as a Foundation stream. Foundation opens paths only, and `/dev/stdin` can't be opened if it is a socket.
final class DescriptorStream: InputStream {
    private let descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override var hasBytesAvailable: Bool { true }

    /// Blocks until bytes are available; returns 0 at the end, −1 on an error.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        while true {
            let count = systemRead(descriptor, buffer, maxLength)
            if count >= 0 { return count }
            if errno == EAGAIN {
                var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&entry, 1, -1)
            } else if errno != EINTR {
                return -1
            }
        }
    }
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int { read(descriptor, buffer, count) }
