// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

extension TransferFailure.Kind {
    /// Classifies a libcurl error: the one place where its codes are interpreted.
    ///
    /// - Parameters:
    ///   - code: libcurl's result.
    ///   - phase: the phase that the transfer had reached.
    ///   - message: libcurl's error message, which is more specific than some of its codes.
    ///   - usesProxy: whether the transfer goes through a proxy.
    ///   - isHTTP2: whether the connection is known to speak HTTP/2.
    static func of(
        _ code: CURLcode, phase: TransferFailure.Phase, message: String, usesProxy: Bool, isHTTP2: Bool = false
    ) -> Self {
        if message.isAboutClientCertificate(duringSetUp: phase < .sending) { return .clientCertificate }
        switch code {
        case CURLE_URL_MALFORMAT: return .invalidURL
        // After the request was sent, the code means HTTP/0.9: a response without a status line.
        case CURLE_UNSUPPORTED_PROTOCOL: return phase < .sending ? .unsupportedScheme : .protocolViolation
        case CURLE_COULDNT_RESOLVE_HOST: return .nameResolution
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: return .proxy
        case CURLE_COULDNT_CONNECT where usesProxy && message.contains("CONNECT"): return .proxy
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: return .connect
        case CURLE_OPERATION_TIMEDOUT: return phase < .sending ? .connectTimeout : .totalTimeout
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED: return .secureConnection
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_CRL_BADFILE:
            return .serverCertificate
        case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT: return .clientCertificate
        case CURLE_HTTP2, CURLE_HTTP2_STREAM: return message.isAboutLostStream(code) ? .connectionLost : .protocolViolation
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP3, CURLE_TOO_MANY_REDIRECTS: return .protocolViolation
        // A transfer coding: libcurl is not asked to decode content codings.
        case CURLE_BAD_CONTENT_ENCODING: return .protocolViolation
        case CURLE_FILESIZE_EXCEEDED, .tooLarge: return .tooLarge
        // The code of libcurl before 8.6 for a header line of more than 100 KiB.
        case CURLE_OUT_OF_MEMORY where phase == .waiting || phase == .receivingHead: return .tooLarge
        // Before 8.0, the code for a session that nghttp2 has ended because of invalid input; a connection closed by the peer has a
        // message.
        case CURLE_GOT_NOTHING where isHTTP2: return .protocolViolation
        case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE: return .connectionLost
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND:
            if message.contains("chunk") || message.contains("nghttp2_session_mem_recv") { return .protocolViolation }
            if phase < .sending { return usesProxy ? .proxy : .connect }
            return .connectionLost
        case CURLE_READ_ERROR, CURLE_ABORTED_BY_CALLBACK: return .requestBody
        // After the head of a response libcurl's own arguments are valid, so the peer's chunk or trailer is malformed.
        case CURLE_BAD_FUNCTION_ARGUMENT where phase == .receivingBody: return .protocolViolation
        case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_UNKNOWN_OPTION, CURLE_NOT_BUILT_IN,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED:
            return .configuration
        default: return .other
        }
    }
}

extension String {
    /// The alerts (RFC 8446, section 6.2) by which a host rejects a client's certificate, in OpenSSL's words for received alerts.
    private static let alerts = [
        "certificate required", "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
        "certificate unknown", "unknown ca",
    ]

    /// Whether libcurl's message is about the client certificate, unusable or rejected by the host: the code doesn't say.
    fileprivate func isAboutClientCertificate(duringSetUp: Bool) -> Bool {
        if contains("SSL routines"), let alert = firstScalarRange(of: " alert ") {
            return Self.alerts.contains { self[alert.upperBound...].hasBytePrefix($0) }
        }
        return duringSetUp && ["private key", "client certificate", "PKCS12"].contains { firstRange(of: $0) != nil }
    }
}

extension String {
    /// The HTTP/2 error codes (RFC 9113, section 7) with which a peer abandons a stream without a protocol violation: NO_ERROR,
    /// INTERNAL_ERROR, SETTINGS_TIMEOUT, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM.
    private static let streamLossCodes: Set<Int> = [0, 2, 4, 7, 8, 11]

    /// Whether libcurl's message for an HTTP/2 error is about a stream or connection that the peer has ended, the equivalent of a closed
    /// connection in HTTP/1.1. For a protocol violation, the message names it.
    fileprivate func isAboutLostStream(_ code: CURLcode) -> Bool {
        if self == String(cString: curl_easy_strerror(code)) || contains("closed cleanly, but before") { return true }
        return streamErrorCode.map(Self.streamLossCodes.contains) ?? false
    }

    /// The error code with which the peer has ended a stream.
    private var streamErrorCode: Int? {
        if let number = firstScalarRange(of: "(err ") { return Int(self[number.upperBound...].prefixScalars { $0 != ")" }) }
        // In the words of 8.23. A stream that is reset by curl is one that has broken a rule.
        guard let number = firstScalarRange(of: "reset by server (error 0x") else { return nil }
        return Int(self[number.upperBound...].prefix(while: \.isHexDigit), radix: 16)
    }
}

extension CURLcode {
    /// `CURLE_TOO_LARGE`, which older headers don't declare.
    fileprivate static let tooLarge = CURLcode(rawValue: 100)
}
