// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The options of transfers: time limits, connections, security, proxy, decoding.
public struct TransferOptions: Sendable, Hashable {
    /// The longest time for resolving the host, connecting and setting up TLS.
    ///
    /// 30 seconds by default; `nil` leaves it to the operating system. Each address of a host gets a share of it. The session's resolver, and a
    /// closure that decides on the host's certificates, have as long, and without it no limit: a program that asks its user to decide needs a
    /// longer one.
    public var connectTimeout: Duration? = .seconds(30)

    /// The longest wait between the request's last byte and the response's first byte.
    ///
    /// `nil` by default: ``idleTimeout`` covers it.
    public var firstByteTimeout: Duration?

    /// The longest pause between two bytes, sent or received, once connected. Time while paused, or while the request's body has no bytes
    /// available, does not count.
    ///
    /// Bytes of a response count if they belong to its head, its body or its trailers: what only frames these, such as an extension of a
    /// chunk, is no progress.
    ///
    /// 60 seconds by default; `nil` for no limit. A stalled upload is detected within twice that time. A `URLRequest` replaces it by a
    /// `timeoutInterval` other than 60, which is Foundation's default and can't be distinguished from one that was set.
    public var idleTimeout: Duration? = .seconds(60)

    /// The longest time for the whole transfer, including the wait for a connection.
    ///
    /// `nil` by default. Redirects and authenticated retries count towards the same total; each attempt of a retrier starts from zero. What
    /// counts is the time of the transfers, including the time for which a transfer waits for a closure that decides on its response or its
    /// server, or is suspended. Time between and around transfers does not count: adapters, validation and retriers, the delay before a
    /// retry, and a closure that decides on a response that has been received completely.
    public var totalTimeout: Duration?

    /// The longest wait for a free connection to the host when ``TransportConfiguration/maximumConnectionsPerHost`` are in use.
    ///
    /// `nil` by default: the transfer waits, within its ``totalTimeout`` if it has one. A program that sends more requests than the host
    /// gets connections is no failure of the host.
    public var queueTimeout: Duration?

    /// The HTTP versions to use; `automatic` by default.
    public var httpVersion: HTTPVersionPolicy = .automatic

    /// The TLS settings.
    public var tls = TLSOptions()

    /// The proxy; taken from the environment by default. Where ``addresses`` are limited, a transfer through a proxy fails unless they allow
    /// it (``AddressPolicy/allowsProxies``).
    public var proxy: ProxyPolicy = .environment

    /// The network interface to send from: its name, such as `eth0`, or an address of this machine, such as `192.0.2.7` or `2001:db8::7`;
    /// `nil`, the default, leaves the choice to the system's routes.
    ///
    /// Where the system does not permit binding to an interface, the transfer binds to the interface's address. An address is the source
    /// address and does not choose the route. A transfer over an interface or an address that this machine does not have fails with
    /// ``TransferFailure/Kind/connect``.
    public var interface: String?

    /// The addresses that transfers may connect to; ``AddressPolicy/any`` by default.
    ///
    /// A transfer to a host without an allowed address fails with ``TransferFailure/Kind/addressNotAllowed`` before anything is sent. With a
    /// limit, proxies have to be allowed: ``AddressPolicy/allowsProxies``.
    public var addresses = AddressPolicy.any

    /// Whether content codings (RFC 9110, section 8.4.1) are undone: `gzip`, `deflate`, with the trait Brotli `br`, and with the trait Zstd
    /// `zstd`; `true` by default.
    ///
    /// `false` delivers the bytes as received. So does `true` if `Content-Encoding` contains an unknown coding. A body with more than three
    /// codings fails with ``TransferFailure/Kind/decoding``. Decoding is done in slices of a few milliseconds, so that it delays neither
    /// other transfers nor time limits and cancellation.
    public var decodesContent = true

    /// The most bytes to which each received byte of a coded body may expand; 256 by default, `nil` for no limit.
    ///
    /// Of a body with several codings, what each of them decodes to counts. Enforced from 16 MiB of decoded bytes on: decompression bombs
    /// expand by factors of thousands, other bodies hardly by a hundred. Beyond the limit the transfer fails with
    /// ``TransferFailure/Kind/tooLarge``.
    public var maximumExpansion: Int? = 256

    /// The largest response head in bytes, interim responses and trailers included; 256 KiB by default.
    ///
    /// Beyond the limit the transfer fails with ``TransferFailure/Kind/tooLarge``, as with the next two.
    public var maximumHeadSize = 256 * 1024

    /// The largest field of a response head in bytes, with its name and line break; 64 KiB by default.
    ///
    /// Over HTTP/1.1, libcurl itself accepts at most 100 KiB.
    public var maximumHeaderSize = 64 * 1024

    /// The most fields in a response head, and likewise in its trailers; 1,000 by default.
    public var maximumHeaderCount = 1000

    /// The most interim responses (1xx; RFC 9110, section 15.2) before a final one; 32 by default.
    ///
    /// Without a limit they could keep a transfer in flight indefinitely. Beyond it the transfer fails with
    /// ``TransferFailure/Kind/protocolViolation``.
    public var maximumInterimResponses = 32

    /// The options that few sessions set: sockets, names, keep-alive. One reference, so that they cost nothing where they are not set.
    var reachBox: ReachOptions.Box?

    /// Creates options with the defaults.
    public init() {}
}

extension TransferOptions {
    var headLimits: TransferState.HeadLimits {
        TransferState.HeadLimits(
            size: maximumHeadSize, fieldSize: maximumHeaderSize, fieldCount: maximumHeaderCount, interimResponses: maximumInterimResponses)
    }

    /// Whether transfers are bound to a source address instead of an interface.
    package var isBoundToAddress: Bool { interface.flatMap { IPAddress($0) } != nil }

    /// Why no transfer can be bound to the interface; `nil` if one can, or if there is none.
    fileprivate var interfaceInvalidity: String? {
        guard let interface, interface.isEmpty || interface.hasZeroByte else { return nil }
        return "The interface is empty or contains a NUL"
    }
}

/// The options of transfers together with the values derived from them; shared by a session's transfers, so that these are computed once.
package final class PreparedOptions: Sendable {
    package let options: TransferOptions
    let limits: TimeLimits
    /// The connect timeout in libcurl's unit.
    let connectTimeoutMilliseconds: Int
    /// Why no transfer with these options can be started; `nil` if they are usable.
    let invalidity: String?
    /// Whether addresses or ports are limited.
    let isGuarded: Bool
    /// Those of the policy; the environment has its own.
    let proxyExceptions: ProxyExceptions
    /// Whether how a transfer is set up may depend on its URL, or change: its route, its proxy, its certificate.
    let dependsOnURL: Bool
    /// Whether there is a client certificate without origins of its own, which belongs to that of each request.
    package let hasUnboundCertificate: Bool
    /// Whether there are authorities or a client certificate in files.
    let hasFiles: Bool
    /// Whether there are authorities in a file, which an HTTPS proxy needs for `http`, too.
    let hasAuthorityFile: Bool
    /// The options with what their files contained last.
    let latest = Lock(PreparedOptions?.none)
    /// The partitions of requests with these options, once they are known.
    let partitions = Lock((secure: Partition?.none, plain: Partition?.none))
    /// The ``Transport/cachePartition`` of the session's transport.
    let transportPartition: String?

    package init(_ options: TransferOptions, transportPartition: String? = nil) {
        self.options = options
        self.transportPartition = transportPartition
        proxyExceptions = ProxyExceptions(options.proxy.exceptions)
        let exception = proxyExceptions.unusable.map {
            "The exception \"\($0)\" of `proxy` matches no host: write a host, host:port, .domain, *.domain, an address, a range or *"
        }
        invalidity =
            options.tls.trust?.invalidity ?? options.reachBox?.value.invalidity ?? options.httpVersion.invalidity
            ?? options.interfaceInvalidity ?? options.tls.clientCertificate?.invalidity ?? exception
        isGuarded = options.addresses.isLimited
        let certificate = options.tls.clientCertificate
        hasUnboundCertificate = certificate != nil && certificate?.origins == nil
        hasFiles = options.tls.hasFiles
        hasAuthorityFile = options.tls.hasAuthorityFile
        dependsOnURL =
            isGuarded || certificate?.origins != nil || options.reachBox?.value.hasRoutes == true
            || options.tls.trust?.chooser != nil
        limits = TimeLimits(options)
        connectTimeoutMilliseconds = options.connectTimeout?.atLeastOneMillisecond ?? Int(Int32.max)
    }

    /// The defaults.
    static let standard = PreparedOptions(TransferOptions())
}

/// The timeouts of one request, in place of those of its options: the options can be shared with other requests, for which handles are
/// set up already.
final class OwnLimits: Sendable {
    let connect: Duration?
    let firstByte: Duration?
    let idle: Duration?
    let total: Duration?
    let limits: TimeLimits
    /// The connect timeout in libcurl's unit; `nil` for that of the options.
    let connectMilliseconds: Int?
    /// The header field that informs the server of the time until the request's deadline; `nil` for none.
    let deadlineField: String?

    init(
        connect: Duration?, firstByte: Duration?, idle: Duration?, total: Duration?, otherwise limits: TimeLimits, deadlineField: String?
    ) {
        self.deadlineField = deadlineField
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
        self.limits = TimeLimits(
            total: total?.nanoseconds ?? limits.total, queue: limits.queue, idle: idle?.nanoseconds ?? limits.idle,
            firstByte: firstByte?.nanoseconds ?? limits.firstByte)
        connectMilliseconds = connect?.atLeastOneMillisecond
    }

    func applied(to options: TransferOptions) -> TransferOptions {
        var options = options
        if let connect { options.connectTimeout = connect }
        if let firstByte { options.firstByteTimeout = firstByte }
        if let idle { options.idleTimeout = idle }
        if let total { options.totalTimeout = total }
        return options
    }
}

/// The HTTP version that a transfer uses. Later versions may add cases, so a `switch` needs a `default`.
public enum HTTPVersionPolicy: Sendable, Hashable {
    /// HTTP/2 if TLS negotiates it (RFC 9113, section 3.2), otherwise HTTP/1.1.
    ///
    /// Before libcurl 8.3, whose HTTP/2 uploads can hang or spin, bodies over 64 KiB and of unknown length are sent over HTTP/1.1.
    case automatic
    /// HTTP/1.1 only.
    case http1
    /// HTTP/2 without TLS, by prior knowledge (RFC 9113, section 3.3); with TLS the same as ``automatic``.
    case http2PriorKnowledge
    /// HTTP/3 (RFC 9114) if a connection over QUIC is made before one over TCP, otherwise HTTP/2 or HTTP/1.1; for `http`, the same as
    /// ``automatic``.
    ///
    /// libcurl starts both, QUIC first. The response's metrics show which version was spoken. A libcurl without HTTP/3
    /// (``CurlInfo/supportsHTTP3``) fails the transfer with ``TransferFailure/Kind/configuration`` at once. 0-RTT (RFC 9114, section 10.9)
    /// is never used: a request in early data can be replayed by an attacker who has recorded it. Proxies are not used by QUIC: with one,
    /// the transfer uses TCP.
    case http3
    /// HTTP/3 (RFC 9114) only: a host that does not speak it fails the transfer. Requires `https`.
    ///
    /// Otherwise as ``http3``.
    case http3Only
}

extension HTTPVersionPolicy {
    /// Whether HTTP/3 is asked for.
    var wantsHTTP3: Bool { self == .http3 || self == .http3Only }

    /// Why the policy can't be met by the libcurl in use; `nil` if it can.
    fileprivate var invalidity: String? {
        guard wantsHTTP3, !CurlInfo.current.supportsHTTP3 else { return nil }
        return "libcurl \(CurlInfo.current.version) has no HTTP/3"
    }
}

/// The proxy that a transfer uses. Later versions may add cases, so a `switch` needs a `default`.
public enum ProxyPolicy: Sendable, Hashable {
    /// The variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, read once in a process, when its first session is made: a later
    /// `setenv` has no effect.
    case environment
    /// No proxy.
    case none
    /// The proxy at a URL with the scheme `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`, except for the listed hosts.
    ///
    /// User and password stand in the URL, percent-encoded: `http://name:pass%20word@proxy.example.org:3128`.
    ///
    /// An exception is a name (`example.org` or `.example.org`: with its subdomains; `*.example.org`: these only), an IPv4 or IPv6 address,
    /// a range of addresses (`10.0.0.0/8`, `fd00::/8`; RFC 4632, section 3.1), which names are not resolved for, or `*` for all hosts. A
    /// name or an address may have a port (`localhost:8080`, `[::1]:8080`). Case does not count; an element may hold several exceptions,
    /// separated by commas or white space. With one that matches no host, transfers fail with ``TransferFailure/Kind/configuration``; one
    /// of `no_proxy`, which has the same forms, is ignored.
    case url(String, except: [String] = [])
    /// Separate proxies for the URL schemes `http` and `https`, in the forms of ``url(_:except:)``; `nil` for no proxy.
    case schemes(http: String?, https: String?, except: [String] = [])
}

extension ProxyPolicy {
    /// The listed hosts.
    fileprivate var exceptions: [String] {
        switch self {
        case .url(_, let except), .schemes(_, _, let except): except
        case .environment, .none: []
        }
    }
}

// MARK: - Descriptions

extension ProxyPolicy: LineConvertible, RedactedReflectable {
    /// The policy, with user names and passwords redacted.
    package var line: String {
        switch self {
        case .environment: "environment"
        case .none: "none"
        case .url(let url, let except): "\(Self.shown(url)), except \(except)"
        case .schemes(let http, let https, let except):
            "http: \(http.map(Self.shown) ?? "none"), https: \(https.map(Self.shown) ?? "none"), except \(except)"
        }
    }

    /// Redacts a proxy's URL, which may lack a scheme.
    static func shown(_ url: String) -> String {
        url.containsScalars(of: "//") ? url.redactedURL : String("//\(url)".redactedURL.dropFirstScalars(2))
    }
}
