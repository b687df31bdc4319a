// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Receives the redirect of one authorization request from a browser on this computer (RFC 8252, section 7.3): on 127.0.0.1, on a port that
/// the system chooses.
struct RedirectListener: Sendable {
    let port: Int
    let socket: Descriptor

    init() throws(SystemError) {
        let number = systemSocket(AF_INET, streamSocketType, 0)
        guard number >= 0 else { throw SystemError() }
        socket = Descriptor(number)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                fcntl(number, F_SETFD, FD_CLOEXEC) == 0 && fcntl(number, F_SETFL, O_NONBLOCK) == 0 && bind(number, $0, length) == 0
                    && listen(number, 8) == 0 && getsockname(number, $0, &length) == 0
            }
        }
        guard isListening else { throw SystemError() }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// Waits for a GET whose target is expected, answers it with a page, and returns its target. Other requests get status 404.
    ///
    /// - Throws: ``OAuthError/timedOut(after:)``; `CancellationError`; `POSIXError` if connections can't be accepted.
    func target(within timeout: Duration, page: String, isExpected: @escaping @Sendable (String) -> Bool) async throws -> String {
        let isCancelled = Lock(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Blocks a thread of its own, as long as the user takes.
                DispatchQueue(label: "curlew.redirect").async {
                    let end = ContinuousClock.now + timeout
                    while ContinuousClock.now < end, !isCancelled.withLock({ $0 }) {
                        do throws(SystemError) {
                            guard let target = try next(page, isExpected) else { continue }
                            return continuation.resume(returning: target)
                        } catch {
                            return continuation.resume(throwing: POSIXError(POSIXErrorCode(rawValue: error.code) ?? .EIO))
                        }
                    }
                    let isCancelled = isCancelled.withLock { $0 }
                    continuation.resume(throwing: isCancelled ? CancellationError() : OAuthError.timedOut(after: timeout) as any Error)
                }
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
        }
    }

    /// Answers the next request, if one comes within a tenth of a second; returns its target if that is expected.
    private func next(_ page: String, _ isExpected: (String) -> Bool) throws(SystemError) -> String? {
        guard Self.isReady(socket.number, milliseconds: 100) else { return nil }
        let number = accept(socket.number, nil, nil)
        guard number >= 0 else {
            // The connection stays ready after others, such as EMFILE, so that the loop would never wait.
            guard [EAGAIN, EINTR, ECONNABORTED].contains(errno) else { throw SystemError() }
            return nil
        }
        let connection = Descriptor(number)
        guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0, fcntl(number, F_SETFL, O_NONBLOCK) == 0 else { return nil }
        let words = Self.head(of: connection).prefixScalars { $0 != "\r" && $0 != "\n" }.splitScalars(separator: " ")
        guard !words.isEmpty else { return nil }
        let target = words.count == 3 && words[0].hasSameBytes(as: "GET") ? String(words[1]) : ""
        let isRight = isExpected(target)
        let body = isRight ? page : "<!doctype html><title>Not found</title>"
        let response = """
            HTTP/1.1 \(isRight ? "200 OK" : "404 Not Found")\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: \(body.utf8.count)\r
            Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n\(body)
            """
        // Less than a socket's buffer.
        _ = Array(response.utf8).withUnsafeBytes { sendQuietly(connection.number, $0) }
        return isRight ? target : nil
    }

    /// The head of a request, of at most 16 KiB, that comes within a second: browsers also open connections ahead, and send nothing.
    private static func head(of connection: Descriptor) -> String {
        var bytes: [UInt8] = []
        let end = ContinuousClock.now + .seconds(1)
        while bytes.count < 16 << 10, !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8), ContinuousClock.now < end {
            guard isReady(connection.number, milliseconds: 100) else { continue }
            var piece = [UInt8](repeating: 0, count: 4096)
            let count = recv(connection.number, &piece, piece.count, 0)
            guard count > 0 else { break }
            bytes += piece.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isReady(_ number: Int32, milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }
}
