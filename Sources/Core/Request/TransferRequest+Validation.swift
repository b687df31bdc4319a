// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

extension TransferRequest {
    /// Returns the URL with its host in ASCII, otherwise unchanged; throws for a URL that can't be requested.
    static func validated(_ url: URL, _ string: String) throws(CurlewError) -> String {
        guard let scheme = url.scheme?.lowercased() else { throw .urlRequestValidationFailed(reason: .unsupportedScheme(url: url)) }
        guard scheme == "http" || scheme == "https" else { throw .urlRequestValidationFailed(reason: .unsupportedScheme(url: url)) }
        guard let host = url.host, !host.isEmpty else { throw .urlRequestValidationFailed(reason: .missingHost(url: url)) }
        if let port = url.port, !(1...65_535).contains(port) { throw .urlRequestValidationFailed(reason: .invalidPort(port)) }
        do {
            return try string.normalizingHost()
        } catch {
            throw .invalidHost(error, of: string)
        }
    }

    func validateHeaders() throws(CurlewError) {
        if let header = headers.first(where: { !$0.isValid }) {
            throw .urlRequestValidationFailed(reason: .invalidHeader(name: header.name))
        }
    }

    func validateBody() throws(CurlewError) {
        if body != nil, method == .head || method == .trace {
            throw .urlRequestValidationFailed(reason: .bodyNotAllowed(method))
        }
    }
}

extension CurlewError {
    /// The error for an invalid host, of the kind of libcurl's error for a URL that it rejects.
    static func invalidHost(_ error: URLHost.ValidationError, of url: String) -> CurlewError {
        .transferFailed(TransferFailure(kind: .invalidURL, url: url, phase: .queued, message: error.message))
    }
}
