// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewHTTP
import CurlewTestSupport
import Dispatch

/// A server on 127.0.0.1 for one request, whose chunked body it returns as the body of the response, each piece as it arrives: the head of
/// the response precedes the end of the request.
final class EchoingHTTPServer: Sendable {
    let port: Int
    private let listener: Int32
    /// Signalled when the thread does not use the listener any more.
    private let isAccepted = DispatchSemaphore(value: 0)

    init() throws {
        #if canImport(Glibc)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let listener = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard listener >= 0 else { throw TestError("socket: \(errno)") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && getsockname(listener, $0, &length) == 0 && listen(listener, 4) == 0
            }
        }
        guard isBound else { throw TestError("bind: \(errno)") }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [isAccepted] in
            let connection = accept(listener, nil, nil)
            isAccepted.signal()
            Self.serve(connection)
        }
    }

    deinit {
        // Ends `accept`, if there was no request.
        _ = shutdown(listener, Int32(SHUT_RDWR))
        // Another socket may get the descriptor at once.
        _ = isAccepted.wait(timeout: .now() + 5)
        close(listener)
    }

    private static func serve(_ connection: Int32) {
        guard connection >= 0 else { return }
        defer { close(connection) }
        var received = [UInt8]()
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        let endOfHead = Array("\r\n\r\n".utf8)
        while received.firstRange(of: endOfHead) == nil {
            let count = read(connection, &buffer, buffer.count)
            guard count > 0 else { return }
            received += buffer.prefix(count)
        }
        guard let end = received.firstRange(of: endOfHead)?.upperBound,
            send(Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".utf8), to: connection)
        else { return }
        // The coding of the request is that of the response: its bytes need no change.
        var piece = Array(received[end...])
        let endOfBody = Array("0\r\n\r\n".utf8)
        while send(piece, to: connection), piece.suffix(endOfBody.count) != endOfBody[...] {
            let count = read(connection, &buffer, buffer.count)
            guard count > 0 else { return }
            piece = Array(buffer.prefix(count))
        }
    }

    private static func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                buffer.baseAddress.map { write(connection, $0 + sent, buffer.count - sent) } ?? 0
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
#endif
