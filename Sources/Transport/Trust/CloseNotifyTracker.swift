// SPDX-License-Identifier: Apache-2.0
import CCurlew

/// Tracks which connections have received TLS's close_notify (RFC 8446, section 6.1).
///
/// For a body delimited by close, libcurl takes any end of the connection as complete, and does not report whether close_notify was
/// received.
struct CloseNotifyTracker {
    private static let alert: Int32 = 21
    private static let closeNotify: UInt8 = 0

    /// The OpenSSL objects of the observed connections; `true` after close_notify.
    private var connections: [UnsafeRawPointer: Bool] = [:]

    /// Observes the connection that a transfer is about to use.
    mutating func watch(_ handle: EasyHandle, for loop: EventLoopThread) {
        guard let session = ccurlew_tls_session(handle.raw) else { return }
        let isWatched = ccurlew_tls_watch(handle.raw, Self.callback, borrowedPointer(to: loop))
        connections[session] = isWatched ? false : nil
    }

    /// Whether an observed connection has not received close_notify.
    func isMissing(on session: UnsafeRawPointer?) -> Bool { session.flatMap { connections[$0] } == false }

    mutating func received(on session: UnsafeRawPointer) {
        if connections[session] != nil { connections[session] = true }
    }

    private static let callback: ccurlew_tls_message_callback = { isWritten, _, kind, bytes, count, session, context in
        guard isWritten == 0, kind == alert, count == 2, let bytes, let session, let context,
            bytes.load(fromByteOffset: 1, as: UInt8.self) == closeNotify
        else { return }
        context.borrow(EventLoopThread.self) { $0.closeNotifyTracker.received(on: session) }
    }
}
