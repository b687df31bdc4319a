// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// The connection that a request goes out on: whether it may, and what is known of it.

extension Transfer {
    /// What is known of the connection in use.
    struct Connection {
        /// Sockets that libcurl opened for this transfer and has not used yet.
        var openedSockets: [Int32] = []
        /// The one that the request goes out on; −1 while that is not known.
        var socket: Int32 = -1
        /// What metrics tell of it; `nil` before a request is about to go out on it.
        var info: ConnectionInfo?
        /// OpenSSL's object for it, to tell it by.
        var tlsSession: UnsafeRawPointer?
        /// Whether the host has asked for a certificate that we have not, on a new connection.
        var lacksCertificate = false

        /// Forgets all for the next request.
        mutating func forget() {
            forgetSockets()
            socket = -1
            info = nil
            lacksCertificate = false
        }

        mutating func forgetSockets() {
            if !openedSockets.isEmpty { openedSockets.removeAll(keepingCapacity: true) }
        }
    }

    /// Whether libcurl works for this transfer on a socket.
    func uses(_ socket: Int32) -> Bool { multi != nil && (connection.socket == socket || connection.openedSockets.contains(socket)) }

    /// The connection stands: whether the request may go out.
    func requestStarts(
        localPort: Int32, remotePort: Int32, localAddress: UnsafePointer<CChar>?, remoteAddress: UnsafePointer<CChar>?
    ) -> TransferState.RequestAction {
        let isKept = connection.openedSockets.isEmpty
        let key = PooledConnections.key(localPort, remotePort, remoteAddress)
        let socket = noteConnection(key, isKept: isKept) {
            ConnectionInfo.Values(
                remoteAddress: .address(remoteAddress), remotePort: Int(remotePort), localAddress: .address(localAddress),
                localPort: Int(localPort))
        }
        connection.forgetSockets()
        connection.socket = socket
        guard mayUse(remoteAddress) else { return .refuseConnection }
        // A request that can't be sent again is worth a look at the last moment.
        let mustLook = !loop.isQuiet(socket) || !state.mayRepeat
        let isSpoilt = isKept && mustLook && PooledConnections.isSpoilt(socket, isSecure: isSecure)
        if !isSpoilt, isSecure, let requirement = request.prepared.options.tls.trust, !isTrusted(socket, requirement) {
            return .refuseConnection
        }
        if isSecure, !isSpoilt, !meetsHost(isKept: isKept) { return .refuseConnection }
        let action = state.requestStarts(isSpoilt: isSpoilt, isKept: isKept)
        guard action == .send else { return action }
        heldHead = nil
        expectation = request.expectsContinue ? .stated : .none
        lastActivity = loop.now
        if request.body == nil { requestEnded() } else { loop.armTimer(self) }
        if isSecure, !isKept, request.options.tls.clientCertificate == nil {
            connection.lacksCertificate = ccurlew_tls_asked_for_certificate(handle.raw)
        }
        return .send
    }

    /// Notes what is known of the connection; its socket, −1 when that is not known.
    private func noteConnection(_ key: Int, isKept: Bool, _ ends: () -> ConnectionInfo.Values) -> Int32 {
        if isKept, let known = loop.connections.connection(key) {
            connection.info = known.info
            return known.socket
        }
        var values = ends()
        if isSecure {
            values.tlsVersion = ccurlew_tls_version(handle.raw).map { String(cString: $0) }
            values.tlsCipher = ccurlew_tls_cipher(handle.raw).map { String(cString: $0) }
            values.isHTTP2 = ccurlew_tls_is_http2(handle.raw)
        } else {
            values.isHTTP2 = request.prepared.options.httpVersion == .http2PriorKnowledge && CurlInfo.current.supportsHTTP2
        }
        let info = ConnectionInfo(values)
        connection.info = info
        return loop.connections.opened(key, info, among: connection.openedSockets)
    }

    /// Whether a kept connection, which another session may have made, leads to an address that is allowed; if not, why is noted.
    private func mayUse(_ remoteAddress: UnsafePointer<CChar>?) -> Bool {
        let addresses = addresses
        guard addresses.isLimited, let remoteAddress, let address = NetworkAddress(String(cString: remoteAddress)) else { return true }
        guard !addresses.allows(address) else { return true }
        state.refusedConnection(.addressNotAllowed, Self.refusal(of: address))
        return false
    }

    /// Notes the connection; `false` if its host is refused because its certificate has no alternative names.
    private func meetsHost(isKept: Bool) -> Bool {
        connection.tlsSession = ccurlew_tls_session(handle.raw)
        guard !isKept else { return true }
        guard !request.prepared.options.tls.verifiesHostName || ccurlew_tls_has_names(handle.raw) else {
            state.refusedConnection(.serverCertificate, "The host's certificate has no alternative names, and so names no host")
            return false
        }
        loop.closingAlerts.watch(handle, for: loop)
        return true
    }

    /// Whether the connection's certificates are what is required; if not, why is noted.
    private func isTrusted(_ socket: Int32, _ requirement: TrustRequirement) -> Bool {
        switch loop.trust.judge(handle, socket: socket, by: requirement, request.options.tls) {
        case .trusted: return true
        case .refused(let message): state.refusedConnection(.serverCertificate, message)
        case .undecided(let question):
            state.setUp(reached: .securing)
            self.question = question
        }
        return false
    }
}
