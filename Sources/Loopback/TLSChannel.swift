// SPDX-License-Identifier: Apache-2.0
import CLoopback

/// OpenSSL's context of a server. Thread-safe: its sessions may be made on any thread.
final class TLSContext: @unchecked Sendable {  // OpenSSL locks it itself
    private let context: UnsafeMutableRawPointer

    init(_ tls: ServerTLS) throws {
        var reason: UnsafePointer<CChar>?
        let context = tls.identity.chain.withCString { chain in
            tls.identity.key.withCString { key in
                withOptionalCString(tls.clientAuthority?.pem) { authority in
                    var settings = cloopback_tls(
                        chain: chain, key: key, client_authority: authority, client_may_refuse: !tls.requiresClientCertificate,
                        minimum_version: tls.minimumVersion?.rawValue ?? 0, maximum_version: tls.maximumVersion?.rawValue ?? 0)
                    return cloopback_tls_new(&settings, &reason)
                }
            }
        }
        guard let context else { throw TLSError(reason.map { String(cString: $0) } ?? "TLS is not possible") }
        self.context = context
    }

    deinit {
        cloopback_tls_free(context)
    }

    /// Performs the handshake; on the thread that owns the socket.
    fileprivate func accept(_ descriptor: Int32) throws -> UnsafeMutableRawPointer {
        var reason = [CChar](repeating: 0, count: 256)
        guard let session = cloopback_tls_accept(context, descriptor, &reason, reason.count) else {
            throw TLSError(String(decoding: reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return session
    }
}

/// What TLS has negotiated for a connection.
public struct ServerTLSInfo: Sendable, Hashable {
    /// The version, such as `TLSv1.3`.
    public let version: String
    /// Whether the client has resumed an earlier session.
    public let isResumed: Bool
    /// The name of the host that the client asked for (SNI, RFC 6066, section 3); `nil` if it sent none.
    public let serverName: String?
    /// The common name of the client's certificate; `nil` without one.
    public let clientName: String?
}

/// The TLS session of a connected socket. Used on the thread that has made it, which owns the socket.
final class TLSChannel: @unchecked Sendable {  // every use is on the owner's thread, as `isOwner` checks for the calls of others
    let info: ServerTLSInfo
    private let session: UnsafeMutableRawPointer
    private let context: TLSContext
    private let owner = pthread_self()

    init(_ context: TLSContext, descriptor: Int32) throws {
        let session = try context.accept(descriptor)
        self.context = context
        self.session = session
        var name = [CChar](repeating: 0, count: 256)
        let hasName = cloopback_tls_client_name(session, &name, name.count)
        info = ServerTLSInfo(
            version: String(cString: cloopback_tls_version(session)), isResumed: cloopback_tls_is_resumed(session),
            serverName: cloopback_tls_server_name(session).map { String(cString: $0) },
            clientName: hasName ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil)
    }

    deinit {
        cloopback_tls_end(session)
    }

    var isOwner: Bool { pthread_equal(owner, pthread_self()) != 0 }

    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(SocketError) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        let count = cloopback_tls_read(session, base, buffer.count)
        guard count >= 0 else { throw SocketError("SSL_read", code: ECONNRESET) }
        return count
    }

    func send(_ bytes: UnsafeRawBufferPointer) throws(SocketError) {
        guard var position = bytes.baseAddress else { return }
        var left = bytes.count
        while left > 0 {
            let count = cloopback_tls_write(session, position, left)
            guard count > 0 else { throw SocketError("SSL_write", code: EPIPE) }
            position += count
            left -= count
        }
    }

    /// Sends close_notify (RFC 8446, section 6.1).
    func close() { cloopback_tls_close(session) }
}
