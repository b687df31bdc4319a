// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How transfers are made: times, connections, security, proxy, coding.
public struct TransferOptions: Sendable, Hashable {
    /// The longest time for resolving the host, connecting and setting up TLS.
    ///
    /// 30 seconds by default; `nil` leaves it to the operating system. A host with several addresses gets a part of it for each.
    public var connectTimeout: Duration? = .seconds(30)

    /// The longest wait between the request's last byte and the response's first.
    ///
    /// `nil` by default: ``idleTimeout`` covers it.
    public var firstByteTimeout: Duration?

    /// The longest pause between two bytes, sent or received, once connected. Time while paused, or while the request's body has no bytes
    /// to give, does not count.
    ///
    /// 60 seconds by default; `nil` waits for ever. An upload that comes to a halt is noticed within twice that time.
    public var idleTimeout: Duration? = .seconds(60)

    /// The longest time for the whole transfer, waiting for a connection included.
    ///
    /// `nil` by default. Redirects and answered challenges are part of the whole; each retry begins anew. It counts what the transfers
    /// take, and so the time in which one waits for a closure that decides about its response or its server, or for a suspension to end.
    /// What comes between and around them does not count: an adapter, a validation or a retrier, the delay before a retry, and a closure
    /// that decides about a response when all of it has come.
    public var totalTimeout: Duration?

    /// The longest wait for a free connection to the host when ``maximumConnectionsPerHost`` are busy.
    ///
    /// 60 seconds by default; `nil` waits for ever.
    public var queueTimeout: Duration? = .seconds(60)

    /// The version of HTTP to speak; `automatic` by default.
    public var httpVersion: HTTPVersionPolicy = .automatic

    /// The TLS settings.
    public var tls = TLSOptions()

    /// The proxy; by default what the environment says.
    public var proxy: ProxyPolicy = .environment

    /// The name of the network interface to send from, such as `eth0`; `nil`, the default, leaves the choice to the system's routes.
    ///
    /// Where the system does not let a process bind to an interface, the address of the interface is bound to. A transfer over an
    /// interface that is not there fails with ``TransferFailure/Kind/connect``.
    public var interface: String?

    /// The addresses that may be connected to; ``AddressPolicy/any`` by default.
    ///
    /// A transfer to a host that has no other address fails with ``TransferFailure/Kind/addressNotAllowed``, before anything is sent.
    public var addresses = AddressPolicy.any

    /// Whether `gzip` and `deflate` codings (RFC 9110, section 8.4.1) are undone; `true` by default.
    ///
    /// `false` hands over the bytes as they come. So does `true` where `Content-Encoding` names anything that is not known.
    public var decodesContent = true

    /// The most bytes that a coded body may grow to for each byte of it received; 256 by default, `nil` for no limit.
    ///
    /// Counts from 16 MiB of decoded bytes on: bodies that are made to fill memories and disks grow by the thousand, others hardly by the
    /// hundred. Beyond it the transfer fails with ``TransferFailure/Kind/tooLarge``.
    public var maximumExpansion: Int? = 256

    /// The largest response head in bytes, interim responses and trailers included; 256 KiB by default.
    ///
    /// Beyond it the transfer fails with ``TransferFailure/Kind/tooLarge``, as with the next two.
    public var maximumHeadSize = 256 * 1024

    /// The largest field of a response head in bytes, with its name and line break; 64 KiB by default.
    ///
    /// libcurl itself takes none over 100 KiB over HTTP/1.1, whatever is allowed here.
    public var maximumHeaderSize = 64 * 1024

    /// The most fields of a response head, and with them its trailers; 1,000 by default.
    public var maximumHeaderCount = 1000

    /// The most interim responses (1xx; RFC 9110, section 15.2) before a final one; 32 by default.
    ///
    /// Without a limit they would keep a transfer alive for ever. Beyond it the transfer fails with
    /// ``TransferFailure/Kind/protocolViolation``.
    public var maximumInterimResponses = 32

    /// Makes options with the defaults.
    public init() {}
}

extension TransferOptions {
    var headLimits: TransferState.HeadLimits {
        TransferState.HeadLimits(
            size: maximumHeadSize, fieldSize: maximumHeaderSize, fieldCount: maximumHeaderCount, interimResponses: maximumInterimResponses)
    }
}

/// Which version of HTTP a transfer speaks.
public enum HTTPVersionPolicy: Sendable, Hashable {
    /// HTTP/2 where TLS negotiates it (RFC 9113, section 3.2), else HTTP/1.1.
    ///
    /// Below libcurl 8.3, whose HTTP/2 uploads can hang or spin, bodies over 64 KiB and streamed ones go over HTTP/1.1.
    case automatic
    /// HTTP/1.1 only.
    case http1
    /// HTTP/2 without TLS and without asking first (RFC 9113, section 3.3); over TLS as ``automatic``.
    case http2PriorKnowledge
}

/// Which proxy a transfer goes through.
public enum ProxyPolicy: Sendable, Hashable {
    /// The variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, read once when the session is made.
    case environment
    /// No proxy.
    case none
    /// The proxy at a URL with the scheme `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`, except for the listed hosts.
    case url(String, except: [String] = [])
    /// A proxy for URLs with the scheme `http` and one for `https`, `nil` for none, as by ``url(_:except:)``.
    case schemes(http: String?, https: String?, except: [String] = [])
}

// MARK: - Descriptions

extension ProxyPolicy: CustomStringConvertible, CustomReflectable {
    /// The policy, without user names and passwords.
    public var description: String {
        switch self {
        case .environment: "environment"
        case .none: "none"
        case .url(let url, let except): "\(Self.shown(url)), except \(except)"
        case .schemes(let http, let https, let except):
            "http: \(http.map(Self.shown) ?? "none"), https: \(https.map(Self.shown) ?? "none"), except \(except)"
        }
    }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }

    /// A proxy may be named without a scheme.
    private static func shown(_ url: String) -> String {
        url.contains("//") ? url.redactedURL : String("//\(url)".redactedURL.dropFirst(2))
    }
}
