// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// What responses ask for. Requests are upgraded in `SessionTask.start`, redirects in `RedirectPolicy.next`.

/// What a response asks for with `Strict-Transport-Security`.
struct SecurityChange: Sendable {
    let host: String
    let port: Int
    let field: StrictTransportSecurity
}

extension Session {
    /// Whether noting a field may wait for a disk, or runs the user's code, which knows whether trust was evaluated.
    var notingMayBlock: Bool { hsts?.hasFile == true || hasTrustRules }

    /// Returns what a response changes in the session's store; `nil` for nothing. Only the first field counts, only over TLS, and only when it
    /// is received, with a 304 or an error too, not when it is served from a cache (RFC 6797, section 8.1).
    func securityChange(in head: ResponseHead, from url: String) -> SecurityChange? {
        guard let hsts, !head.hasStoredSecurity, head.contains("strict-transport-security"), let origin = HTTPOrigin(url: url),
            origin.scheme == "https" || origin.scheme == "wss",
            let field = head.value(for: "Strict-Transport-Security").flatMap({ StrictTransportSecurity($0) }),
            hsts.isChanged(by: field, from: origin.host)
        else { return nil }
        return SecurityChange(host: origin.host, port: origin.port, field: field)
    }

    /// Notes it, if trust in the host was evaluated.
    ///
    /// - Parameter owned: the task whose owner has evaluated the host; `nil` for none.
    func note(_ change: SecurityChange, in request: TransferRequest, _ owned: OwnedTask?) {
        note(change, under: exchangeOptions(request.options.tls, host: change.host, port: change.port, owned))
    }

    private func note(_ change: SecurityChange, under options: TLSOptions?) {
        // The host's name and its chain: what else a policy accepts is no valid certificate (section 8.1).
        if options?.verifiesServer == true { hsts?.note(change.field, from: change.host) }
    }

    /// The TLS options of an exchange with a host.
    private func exchangeOptions(_ given: TLSOptions, host: String, port: Int, _ owned: OwnedTask? = nil) -> TLSOptions {
        let options = tlsOptions(for: host.comparableHost, port: port, owned) ?? given
        return strictOptions(options, host: host) ?? options
    }

    /// Returns the options with which the certificate of a known host is evaluated although it otherwise would not be: nothing makes an
    /// exception for it (RFC 6797, sections 8.4 and 12.1). `nil` if they stay. Policies that pin, or that evaluate themselves, stay.
    func strictOptions(_ options: TLSOptions, host: String) -> TLSOptions? {
        guard let hsts, !options.verifiesServer, options.trust.map({ $0.rule == TrustRequirement.Rule.none }) ?? true, hsts.knows(host)
        else { return nil }
        var strict = options
        strict.verifiesServer = true
        return strict
    }

    /// The same for a URL; `nil` for one that is not `https`.
    func strictOptions(_ options: TLSOptions, for url: String) -> TLSOptions? {
        guard !options.verifiesServer, let origin = HTTPOrigin(url: url), origin.scheme == "https" else { return nil }
        return strictOptions(options, host: origin.host)
    }

    // MARK: Handshakes over raw streams

    /// Returns the URL of a WebSocket's handshake: with TLS if the host is known (RFC 6797, section 8.3). Reads the store's file, if it has one.
    package func secured(_ url: URL) -> URL {
        guard let hsts else { return url }
        hsts.refresh()
        return hsts.upgraded(url.absoluteString).flatMap { URL(string: $0) } ?? url
    }

    /// Notes what the response to a handshake says about its host. May block, so it must not run on the event loop's thread.
    ///
    /// - Parameter owner: who has evaluated the host in place of the session's delegate; `nil`, the default, for none.
    package func noteSecurity(of head: ResponseHead, from url: String, owner: (any RequestOwner)? = nil) {
        guard let change = securityChange(in: head, from: url) else { return }
        let closures = owner.flatMap { $0.closures.values.taskDidReceiveConnectionChallenge == nil ? nil : $0.closures }
        let owned = closures.map { OwnedTask(closures: $0, task: nil) }
        note(change, under: exchangeOptions(configuration.options.tls, host: change.host, port: change.port, owned))
    }
}
