// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// What the end of a transfer means: libcurl's result, and the failures that libcurl does not know.

extension Transfer {
    /// Whether the body is delimited only by the end of a TLS connection that ended without close_notify.
    private var isTruncated: Bool {
        isSecure && state.isDelimitedByClose && !handle.isMultiplexed && request.prepared.options.tls.requiresCloseNotify
            && loop.closeNotifyTracker.isMissing(on: connection.tlsSession)
    }

    /// Interprets libcurl's result.
    func decision(_ code: CURLcode) -> TransferState.Decision {
        if request.opensConnectionOnly, hasOnlyConnected(code) { return .success }
        let code = run.earlyResponse == .complete && code == CURLE_WRITE_ERROR ? CURLE_OK : code
        guard code != CURLE_OK else {
            if isTruncated {
                let message = "The body has no length and may be truncated: the TLS connection ended without close_notify"
                _ = state.fail(.connectionLost, message)
            }
            if let error = run.decoder?.failureAtEnd { _ = state.fail(error.kind, error.message) }
            return state.completed(code: code, message: "", usesProxy: false)
        }
        noteSetUpPhase()
        // Other addresses may have been tried as well, and failed for other reasons.
        if connection.openedSockets.isEmpty, let (kind, message) = socketFailure(code) { _ = state.fail(kind, message) }
        let message = handle.message(for: code)
        let decision = state.completed(
            code: code, message: message, usesProxy: proxy != nil, isHTTP2: connection.info?.values.isHTTP2 ?? false)
        guard case .failure(let kind, message) = decision, state.phase < .sending, !state.hasOwnFailure else { return decision }
        return .failure(kind, setUpFailure(code, message, url: request.url, socket: request.unixSocket).text)
    }

    /// Whether libcurl has refused the request as it was to, on a connection that is now pooled.
    private func hasOnlyConnected(_ code: CURLcode) -> Bool {
        guard code == CURLE_PARTIAL_FILE || code == CURLE_BAD_FUNCTION_ARGUMENT else { return false }
        return state.requestWasSent && exchange.ownError == nil && loop.connections.isOpen(connection.socket)
    }

    /// The error for the user: the failure detected by Curlew, otherwise libcurl's.
    func error(_ decision: TransferState.Decision, code: CURLcode) -> (any Error)? {
        if let ownError = exchange.ownError { return ownError }
        guard case .failure(var kind, var message) = decision else { return nil }
        if connection.certificate == .lacking, kind == .connectionLost, state.phase < .receivingHead {
            // In TLS 1.3 the host reports this only after the handshake, and its alert may get lost with the connection.
            kind = .clientCertificate
            message = "The host requested a client certificate, and ended the connection without one: \(message)"
        }
        if state.phase < .receivingHead { noteFailure(kind, isRequested: state.phase < .sending || connection.certificate == .chosen) }
        if kind == .serverCertificate, !state.hasOwnFailure, let requirement = request.options.tls.trust {
            message = requirement.message(message)
        }
        return CurlewError.transferFailed(failure(kind, message, code: code))
    }

    func failure(_ kind: TransferFailure.Kind, _ message: String, code: CURLcode = CURLE_OK) -> TransferFailure {
        var failure = TransferFailure(
            kind: kind, url: request.url, phase: state.phase, code: Int(code.rawValue), message: message,
            requestWasSent: state.requestWasSent, bytesReceived: state.bodyBytes)
        if code == CURLE_COULDNT_CONNECT { failure.systemError = handle.systemError }
        failure.isRefusedByPolicy = kind == .serverCertificate && request.options.tls.trust != nil
        return failure
    }

    /// Records the phase that setting up the connection has reached, from libcurl's timestamps.
    func noteSetUpPhase() {
        state.setUp(reached: handle.setUpPhase(isSecure: isSecure))
    }
}
