// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A connection that libcurl could not set up, described with what libcurl's message leaves out: the proxy, the Unix domain socket with the
/// system's reason, and the host of pinned keys.
struct FailedSetUp {
    let url: String
    /// The proxy that was used; `nil` for none.
    let proxy: Proxy?
    /// The Unix domain socket that was connected to; `nil` for TCP.
    var socket: UnixSocket?
    /// The system's last error; 0 if libcurl knows none, as for a socket whose queue of connections is full.
    var systemError: Int32 = 0
    let code: CURLcode
    /// libcurl's.
    let message: String

    /// The message, with the proxy, without its user name and password, with the socket or with the host.
    var text: String {
        if let socket, code == CURLE_COULDNT_CONNECT {
            // libcurl's message names the host and the port, which were not connected to.
            let reason = String(cString: systemError == 0 ? curl_easy_strerror(code) : UnsafePointer(strerror(systemError)))
            return "connect \(socket.shown): \(reason.prefix(1).lowercased())\(reason.dropFirst())"
        }
        if code == CURLE_SSL_PINNEDPUBKEYNOTMATCH {
            return "The public key of \(RouteTarget(url: url)?.host ?? "the host") is none of `publicKeyHashes`: \(message)"
        }
        guard let proxy, let place else { return message }
        return "\(place) \(ProxyPolicy.shown(proxy.url))\(isUnreachable ? " could not be reached" : ""): \(message)"
    }

    /// What of the way through a proxy has failed; `nil` for what is about the host only.
    private var place: String? {
        switch code {
        case _ where isUnreachable: "The proxy"
        case CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_OPERATION_TIMEDOUT, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            "No connection through the proxy"
        default: nil
        }
    }

    /// Whether the proxy itself is what could not be found or connected to: it has not answered a CONNECT.
    private var isUnreachable: Bool {
        code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT && !message.contains("CONNECT")
    }
}
