// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A connection that libcurl could not set up, described with what libcurl's message leaves out: the proxy, and the host of pinned keys.
struct FailedSetUp {
    let url: String
    /// The proxy of the URL's scheme, if there is one.
    let proxy: Proxy?
    let code: CURLcode
    /// libcurl's.
    let message: String

    /// The message, with the proxy, without its user name and password, or with the host.
    var text: String {
        let host = RouteTarget(url: url)?.host
        if code == CURLE_SSL_PINNEDPUBKEYNOTMATCH {
            return "The public key of \(host ?? "the host") is none of `publicKeyHashes`: \(message)"
        }
        guard let proxy, host.map({ proxy.applies(to: $0) }) ?? true, let place else { return message }
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
