// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// HTTP/3 by Alt-Svc (RFC 7838). `EasyHandle.setVersion` has the version of each transfer.

extension Transfer {
    /// The store of alternatives that applies to the transfer; `nil` for none.
    private var alternatives: AlternativeServices? {
        guard let box = request.prepared.options.reachBox, isSecure else { return nil }
        return box.value.alternativeServices
    }

    /// Chooses the alternative for the transfer, if there is one to be tried.
    func chooseAlternative() {
        exchange.alternative = nil
        let options = request.prepared.options
        guard let alternatives, !exchange.hasLeftAlternative, CurlInfo.current.supportsHTTP3, mayUseHTTP3, request.authentication == nil,
            request.body?.hasTrailers != true, options.tls.verifiesServer,
            options.httpVersion == .automatic || options.httpVersion == .http3,
            let host = RouteTarget(url: request.url), let target = alternatives.alternative(for: host, at: Date())
        else { return }
        exchange.alternative = target
        route = target == host ? nil : Route(to: target)
    }

    /// Records the alternatives that a response offers. The connection's certificate was verified by libcurl.
    func noteAlternatives(in head: ResponseHead) {
        guard let alternatives, request.prepared.options.tls.verifiesServer else { return }
        // Misdirected Request: the alternative does not serve the host (RFC 7838, section 6).
        if head.statusCode == 421, let alternative = exchange.alternative { alternatives.failed(alternative, at: Date()) }
        guard let field = head.value(for: "Alt-Svc"),
            let host = RouteTarget(url: request.url)
        else { return }
        alternatives.received(field, from: host, at: Date())
    }

    /// Whether the transfer failed because its alternative could not be reached: it is then sent to the host itself.
    func leavesAlternative(after code: CURLcode) -> Bool {
        guard let target = exchange.alternative, code != CURLE_OK, exchange.ownError == nil, !state.requestWasSent else { return false }
        alternatives?.failed(target, at: Date())
        // A policy of the session has refused the certificate.
        guard !state.hasOwnFailure else { return false }
        exchange.alternative = nil
        exchange.hasLeftAlternative = true
        return true
    }
}

extension EventLoopThread {
    /// Sends a transfer over TCP whose alternative could not be reached.
    func runWithoutAlternative(_ transfer: Transfer) {
        takeBack(transfer)
        connectionReporter?.ended(transfer.number, .completed(nil))
        run(transfer)
    }
}
