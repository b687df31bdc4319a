// SPDX-License-Identifier: Apache-2.0
import CCurlew

/// Which connections were ended by TLS's closing alert, `close_notify` (RFC 8446, section 6.1).
///
/// libcurl takes a connection's end for the end of a body that has no length, and does not say whether the alert was there.
struct ClosingAlerts {
    private static let alert: Int32 = 21
    private static let closeNotify: UInt8 = 0

    /// OpenSSL's objects for the connections that are watched; with the closing alert, `true`.
    private var connections: [UnsafeRawPointer: Bool] = [:]

    /// Watches the connection that a transfer is about to use.
    mutating func watch(_ handle: EasyHandle, for loop: EventLoopThread) {
        guard let session = ccurlew_tls_session(handle.raw) else { return }
        let isWatched = ccurlew_tls_watch(handle.raw, Self.callback, Unmanaged.passUnretained(loop).toOpaque())
        connections[session] = isWatched ? false : nil
    }

    /// Whether a connection that was watched has ended without the alert.
    func isMissing(on session: UnsafeRawPointer?) -> Bool { session.flatMap { connections[$0] } == false }

    mutating func received(on session: UnsafeRawPointer) {
        if connections[session] != nil { connections[session] = true }
    }

    private static let callback: ccurlew_tls_message_callback = { isWritten, _, kind, bytes, count, session, context in
        guard isWritten == 0, kind == alert, count == 2, let bytes, let session, let context,
            bytes.load(fromByteOffset: 1, as: UInt8.self) == closeNotify
        else { return }
        Unmanaged<EventLoopThread>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.closingAlerts.received(on: session) }
    }
}
