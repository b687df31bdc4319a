// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// What libcurl has measured of a transfer.

extension EasyHandle {
    /// Reads libcurl's measurements. Their zero is the time at which the transfer was added to libcurl.
    ///
    /// - Parameter connection: the connection's properties if they are known already.
    func readMetrics(into metrics: inout TransferMetrics, since start: Int64, connection: ConnectionInfo?) {
        func time(_ info: CURLINFO) -> Int64? {
            let microseconds = ccurlew_get_offset(raw, info)
            return microseconds > 0 ? start + Int64(microseconds) * 1000 : nil
        }
        metrics.connection = connection ?? connectionInfo
        metrics.reusedConnection = ccurlew_get_long(raw, CURLINFO_NUM_CONNECTS) == 0 && metrics.remotePort != nil
        if !metrics.reusedConnection {
            metrics.nanoseconds.nameLookup = time(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.nanoseconds.connect = time(CURLINFO_CONNECT_TIME_T)
            metrics.nanoseconds.secureConnection = time(CURLINFO_APPCONNECT_TIME_T)
        }
        metrics.nanoseconds.requestStart = time(CURLINFO_PRETRANSFER_TIME_T)
        metrics.requestHeaderBytes = Int64(ccurlew_get_long(raw, CURLINFO_REQUEST_SIZE))
        metrics.responseHeaderBytes = Int64(ccurlew_get_long(raw, CURLINFO_HEADER_SIZE))
        // libcurl 8.23 has a time for a refused connection, too.
        if metrics.responseHeaderBytes > 0 { metrics.nanoseconds.responseStart = time(CURLINFO_STARTTRANSFER_TIME_T) }
        metrics.httpVersion = httpVersion
    }

    /// The addresses of the connection used last, as far as libcurl knows them.
    var connectionInfo: ConnectionInfo {
        ConnectionInfo(
            ConnectionInfo.Values(
                remoteAddress: .address(ccurlew_get_string(raw, CURLINFO_PRIMARY_IP)), remotePort: port(CURLINFO_PRIMARY_PORT),
                localAddress: .address(ccurlew_get_string(raw, CURLINFO_LOCAL_IP)), localPort: port(CURLINFO_LOCAL_PORT)))
    }

    /// Reads version and cipher of the connection's TLS, as far as libcurl gives access to it.
    func readTLS(into values: inout ConnectionInfo.Values) {
        values.tlsVersion = ccurlew_tls_version(raw).map { String(cString: $0) }
        values.tlsCipher = ccurlew_tls_cipher(raw).map { String(cString: $0) }
    }

    /// The HTTP version of the last response.
    var httpVersion: TransferMetrics.HTTPVersion? { .init(libcurl: ccurlew_get_long(raw, CURLINFO_HTTP_VERSION)) }

    /// Whether the last response came on a stream of HTTP/2 or HTTP/3.
    var isMultiplexed: Bool { httpVersion == .http2 || httpVersion == .http3 }

    /// The phase that setting up the connection has reached, according to libcurl's timestamps.
    func setUpPhase(isSecure: Bool) -> TransferFailure.Phase {
        guard ccurlew_get_offset(raw, CURLINFO_NAMELOOKUP_TIME_T) > 0 else { return .resolving }
        // Before 8.0, libcurl records the connect time only together with TLS's, but counts the connection immediately.
        return isSecure && ccurlew_get_long(raw, CURLINFO_NUM_CONNECTS) > 0 ? .securing : .connecting
    }

    /// The bytes of the response's body that libcurl has received, decoded by it or not, those included that it keeps while it is paused.
    var receivedBytes: Int64 { Int64(ccurlew_get_offset(raw, CURLINFO_SIZE_DOWNLOAD_T)) }

    /// The system's error of the last failed connect (`errno`); 0 if there was none.
    var systemError: Int32 { Int32(truncatingIfNeeded: ccurlew_get_long(raw, CURLINFO_OS_ERRNO)) }

    /// How long the TLS handshake of a new connection has taken.
    var handshakeTime: Nanoseconds {
        let time = ccurlew_get_offset(raw, CURLINFO_APPCONNECT_TIME_T) - ccurlew_get_offset(raw, CURLINFO_CONNECT_TIME_T)
        return Nanoseconds(max(time, 0)) * 1000
    }

    /// Lets TLS read what the server has sent on the connection of the completed transfer. A connection that has bytes for the application
    /// or has ended is closed when the handle leaves its multi handle.
    ///
    /// That is what libcurl does with those of `CURLOPT_CONNECT_ONLY`, the only ones that it reads without a transfer.
    func readTickets() {
        guard ccurlew_set_long(raw, CURLOPT_CONNECT_ONLY, 1) == CURLE_OK else { return }
        var byte: UInt8 = 0
        var count = 0
        if curl_easy_recv(raw, &byte, 1, &count) == CURLE_AGAIN { _ = ccurlew_set_long(raw, CURLOPT_CONNECT_ONLY, 0) }
    }

    private func port(_ info: CURLINFO) -> Int? {
        let port = ccurlew_get_long(raw, info)
        return port > 0 ? port : nil
    }
}

extension TransferMetrics.HTTPVersion {
    fileprivate init?(libcurl version: Int) {
        switch version {
        case Int(CURL_HTTP_VERSION_1_0): self = .http1_0
        case Int(CURL_HTTP_VERSION_1_1): self = .http1_1
        case Int(CURL_HTTP_VERSION_2_0): self = .http2
        case Int(CURL_HTTP_VERSION_3): self = .http3
        default: return nil
        }
    }
}
