// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension TransferRequest {
    /// Why the request can't be sent. A line break in a header field would inject further fields, and libcurl would take a NUL for the end
    /// of the string.
    var validationError: CurlewError? {
        if let header = headers.first(where: { !$0.isValid }) {
            return .urlRequestValidationFailed(reason: .invalidHeader(name: header.name))
        }
        if let reason = invalidity {
            return .transferFailed(TransferFailure(kind: .configuration, url: url, phase: .queued, message: reason))
        }
        if body?.hasTrailers == true, authentication != nil || prepared.options.httpVersion == .http2PriorKnowledge {
            let message = "libcurl sends trailers only over HTTP/1.1, and only where it does not authenticate the connection"
            return .transferFailed(TransferFailure(kind: .configuration, url: url, phase: .queued, message: message))
        }
        if case .ntlm(let user, let password) = authentication, user.hasZeroByte || password.hasZeroByte {
            return .urlRequestValidationFailed(reason: .invalidHeader(name: "Authorization"))
        }
        guard url.hasZeroByte else { return nil }
        return .transferFailed(TransferFailure(kind: .invalidURL, url: url, phase: .queued, message: "The URL contains a NUL"))
    }

    /// Why the request can't be sent with its options, or not with its URL.
    private var invalidity: String? {
        if let reason = prepared.invalidity { return reason }
        guard prepared.options.httpVersion == .http3Only else { return nil }
        guard HTTPOrigin(url: url)?.scheme == "https" else { return "HTTP/3 needs an https URL" }
        guard unixSocket == nil else { return "HTTP/3 runs over UDP, not over a Unix domain socket" }
        return authentication == nil && body?.hasTrailers != true ? nil : "libcurl has no NTLM, Negotiate or request trailers over HTTP/3"
    }
}

extension String {
    /// Whether libcurl would take the string to be shorter than it is.
    var hasZeroByte: Bool {
        utf8.withContiguousStorageIfAvailable { bytes in
            guard let start = bytes.baseAddress else { return false }
            return memchr(start, 0, bytes.count) != nil
        } ?? utf8.contains(0)
    }
}
