// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// The connection of a request: whether the request may be sent on it, and its properties.

extension Transfer {
    /// What a host gets that requests a client certificate.
    enum Presentation {
        /// It has not requested one, or gets that of the options.
        case unrequested
        case lacking
        /// The one that the program has chosen.
        case chosen
    }

    /// The properties of the connection in use.
    struct Connection {
        /// Sockets that libcurl opened for this transfer and has not used yet.
        var openedSockets: [Int32] = []
        /// The socket on which the request is sent; −1 while it is unknown.
        var socket: Int32 = -1
        /// Its information for metrics; `nil` before a request is about to be sent.
        var info: ConnectionInfo?
        /// OpenSSL's object for it, as its identity.
        var tlsSession: UnsafeRawPointer?
        /// What the host of a new connection gets if it has requested a client certificate.
        var certificate = Presentation.unrequested
        /// The longest time for which it may be idle, by the response; `nil` if that does not say.
        var idleTime: Nanoseconds?

        /// Resets everything for the next request.
        mutating func forget() {
            forgetSockets()
            socket = -1
            info = nil
            certificate = .unrequested
            idleTime = nil
        }

        mutating func forgetSockets() {
            if !openedSockets.isEmpty { openedSockets.removeAll(keepingCapacity: true) }
        }
    }

    /// Whether libcurl uses a socket for this transfer.
    func uses(_ socket: Int32) -> Bool { multi != nil && (connection.socket == socket || connection.openedSockets.contains(socket)) }

    /// The connection is established: decides whether the request may be sent.
    func requestStarts(
        localPort: Int32, remotePort: Int32, localAddress: UnsafePointer<CChar>?, remoteAddress: UnsafePointer<CChar>?
    ) -> TransferState.RequestAction {
        let isReused = connection.openedSockets.isEmpty
        let key = PooledConnections.key(localPort, remotePort, remoteAddress, group: group.number)
        let socket = noteConnection(key, isReused: isReused) {
            ConnectionInfo.Values(
                remoteAddress: .address(remoteAddress), remotePort: Int(remotePort), localAddress: .address(localAddress),
                localPort: Int(localPort))
        }
        connection.forgetSockets()
        connection.socket = socket
        // Of several connections with the same addresses, libcurl reveals the one it uses only afterwards.
        let candidates = isReused && socket < 0 ? loop.idleSockets(amongConnections: key) : []
        if candidates.isEmpty {
            loop.connectionReporter?.uses(number, socket, url: request.url, info: connection.info, isReused: isReused)
        } else {
            loop.identifyLater(self)
        }
        guard !request.prepared.isGuarded || mayUse(remoteAddress, remotePort) else { return .refuseConnection }
        // A request that can't be repeated warrants a check of the connection at the last moment.
        let needsCheck = !loop.isQuiet(socket) || !state.mayRepeat
        let isStale =
            isReused && needsCheck
            && (PooledConnections.isStale(socket, isSecure: isSecure) || loop.endStale(candidates, isSecure: isSecure))
            || isReused && loop.connections.hasExpired(socket, at: loop.now)
        if isSecure, !isStale, !acceptsHost(socket, isReused: isReused) { return .refuseConnection }
        // libcurl is about to repeat the request: if that is allowed, it is done with another handle.
        let needsHandle = hasSentTrailers && state.mayRepeat
        let action = state.requestStarts(isStale: isStale || needsHandle, isReused: isReused)
        guard action == .send else { return action }
        run.heldHead = nil
        exchange.expectation = request.expectsContinue ? .stated : .none
        lastActivity = loop.now
        if request.body == nil { requestEnded() } else { loop.armTimer(self) }
        if isSecure, !isReused, request.prepared.options.tls.clientCertificate?.isFor(request.url) != true {
            if ccurlew_tls_requests_certificate(handle.raw) {
                connection.certificate = request.prepared.options.tls.trust != nil && hasChosenCertificate ? .chosen : .lacking
            }
        }
        return .send
    }

    /// Records the connection. Returns its socket, −1 if that is unknown.
    private func noteConnection(_ key: Int, isReused: Bool, _ ends: () -> ConnectionInfo.Values) -> Int32 {
        if isReused {
            group.reusedCount += 1
            if let known = loop.connections.reused(key) {
                connection.info = known.info
                return known.socket
            }
        }
        var values = ends()
        let socket = PooledConnections.socket(among: connection.openedSockets, localPort: values.localPort)
        if isSecure {
            handle.readTLS(into: &values)
            if ccurlew_tls_is_http2(handle.raw) {
                values.httpVersion = .http2
            } else if CurlInfo.current.supportsHTTP3, socket >= 0, SystemSocket.isDatagram(socket) {
                values.httpVersion = .http3
            }
        } else if request.prepared.options.httpVersion == .http2PriorKnowledge, CurlInfo.current.supportsHTTP2 {
            values.httpVersion = .http2
        }
        let info = ConnectionInfo(values)
        connection.info = info
        if !isReused {
            group.openedCount += 1
            if socket >= 0 {
                group.opened()
                loop.connections.opened(socket, key, info, for: request.url, group: group.number)
            }
        }
        return socket
    }

    /// Whether a pooled connection, possibly made by another session, leads to an allowed address; otherwise the reason is recorded.
    private func mayUse(_ remoteAddress: UnsafePointer<CChar>?, _ remotePort: Int32) -> Bool {
        // A Unix domain socket has no address; it and a proxy are named by the program.
        guard addresses.isLimited, proxy == nil, request.unixSocket == nil else { return true }
        let address = remoteAddress.flatMap { NetworkAddress(String(cString: $0)) }
        let refusal =
            if let address { addresses.refusal(of: address, port: Int(remotePort)) } else { "The connection's address is not known" }
        guard let refusal else { return true }
        state.refusedConnection(.addressNotAllowed, refusal)
        return false
    }

    /// Whether there are certificates to evaluate: not for a connection that was made without a requirement, by a resumed session.
    private var hasCertificates: Bool { ccurlew_tls_path(connection.tlsSession, { _, _, _ in }, nil) }

    /// Records the TLS session; `false` if the host is refused, in which case the reason is recorded.
    private func acceptsHost(_ socket: Int32, isReused: Bool) -> Bool {
        connection.tlsSession = ccurlew_tls_session(handle.raw)
        guard !isReused || request.prepared.options.tls.trust != nil else { return true }
        // libcurl compares certificates, but neither their keys nor who has chosen them.
        if isReused, hasChosenCertificate, let chooser = tls.trust?.chooser, !loop.trust.belongs(socket, to: chooser) {
            _ = state.requestStarts(isStale: true)
            return false
        }
        let decision = decision(on: socket, isReused: isReused)
        // A new connection has some.
        if isReused, case .refused = decision, !hasCertificates {
            _ = state.requestStarts(isStale: true)
            return false
        }
        note(decision)
        switch decision {
        case .trusted:
            if !isReused { loop.closeNotifyTracker.watch(handle, for: loop) }
            return true
        // libcurl keeps a connection of HTTP/2 in its pool, and would send the next request on it.
        case .refused: if !isReused, socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
        case .undecided: break
        }
        return false
    }
}

extension MultiMember {
    /// Decides on a TLS connection, for transfers and raw streams alike, when it is set up and nothing has been sent on it. libcurl gives
    /// access to certificates only at this moment.
    ///
    /// - Parameter socket: the connection's socket; −1 if it is unknown.
    final func decision(on socket: Int32, isReused: Bool) -> TrustRegister.Decision {
        let tls = tls
        // libcurl falls back to the common name, which names no host (RFC 9525, section 6.3).
        if !isReused, tls.verifiesHostName, !ccurlew_tls_has_names(handle.raw) {
            return .refused("The host's certificate has no subject alternative name that is a host's, so it names no host")
        }
        guard let requirement = tls.trust else { return .trusted }
        let isOwn = requirement.chooser.map { loop.trust.belongs(socket, to: $0) } ?? true
        let session = ccurlew_tls_session(handle.raw)
        let decision = loop.trust.evaluate(session, socket: socket, for: requirement, tls, group: group.number)
        guard case .trusted = decision, !isOwn, ccurlew_tls_requests_certificate(handle.raw),
            let question = certificateQuestion(on: session)
        else { return decision }
        // The connection is another's, who has presented nothing, or one whose handshake could not be watched.
        loop.trust.forget(socket)
        return .undecided(question)
    }

    /// Whether its connection was configured with a certificate that the program has chosen.
    final var hasChosenCertificate: Bool { tls.chooser(for: url) != nil && choice?.certificate != nil }
}
