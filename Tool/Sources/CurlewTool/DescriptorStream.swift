// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Standard input as a Foundation stream. Foundation opens paths only, and `/dev/stdin` can't be opened if it is a socket.
final class DescriptorStream: InputStream {
    private let descriptor: Int32
    private let copy: SentBytes?

    /// - Parameter copy: keeps what is read.
    init(descriptor: Int32, copy: SentBytes? = nil) {
        self.descriptor = descriptor
        self.copy = copy
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override var hasBytesAvailable: Bool { true }

    /// Blocks until bytes are available; returns 0 at the end, −1 on an error.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        while true {
            let count = systemRead(descriptor, buffer, maxLength)
            if count >= 0 {
                copy?.append(UnsafeRawBufferPointer(start: buffer, count: count))
                return count
            }
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

/// The beginning of a body that can be read only once, kept while it is sent.
final class SentBytes: @unchecked Sendable {  // the bytes are guarded by the lock
    private let lock = NSLock()
    private var bytes = Data()

    /// What has been sent, up to the size that is formatted.
    var data: Data { lock.withLock { bytes } }

    func append(_ more: UnsafeRawBufferPointer) {
        lock.withLock { bytes.append(contentsOf: more.prefix(BodyPrinter.maximumFormattedSize - bytes.count)) }
    }
}
