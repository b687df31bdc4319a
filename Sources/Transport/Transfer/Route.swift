// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Where a transfer connects to, if not to the addresses of its URL's host, in libcurl's terms; proxies are in ``ProxySettings``.
///
/// By `CURLOPT_CONNECT_TO` and not by `CURLOPT_RESOLVE` alone: libcurl compares the former when it looks for a connection to reuse, while
/// the latter changes the cache of names for all transfers. Several addresses get a name of their own, derived from them.
struct Route: Equatable {
    /// The element of `CURLOPT_CONNECT_TO`.
    let connectTo: String
    /// The element of `CURLOPT_RESOLVE`; `nil` if the target is a single address, or a name to be resolved.
    var resolve: String?
    /// A name that stands for addresses, and the name of which they are: for messages.
    var alias: (name: String, host: String)?

    static func == (lhs: Route, rhs: Route) -> Bool { lhs.connectTo == rhs.connectTo && lhs.resolve == rhs.resolve }

    /// A route to another host.
    init(to target: RouteTarget) {
        connectTo = "::\(target.host.bracketed):\(target.port)"
    }

    /// A route to addresses.
    init(to target: RouteTarget, addresses: [String]) {
        if addresses.count == 1 {
            connectTo = "::\(addresses[0].bracketed):\(target.port)"
        } else {
            let name = "curlew-\(Self.hash([target.host]))-\(Self.hash(addresses.sorted())).invalid"
            connectTo = "::\(name):\(target.port)"
            // With the plus sign the entry expires like others.
            resolve = "+\(name):\(target.port):\(addresses.map(\.bracketed).joined(separator: ","))"
            alias = (name, target.host)
        }
    }

    private static func hash(_ texts: [String]) -> String {
        var hash: UInt64 = 14_695_981_039_346_656_037
        for text in texts {
            for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
            hash = (hash ^ 0x2C) &* 1_099_511_628_211
        }
        return String(hash, radix: 16)
    }
}

/// A host and a port to connect to.
struct RouteTarget: Hashable {
    var host: String
    var port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// The target of a URL; `nil` if it has no valid host or port.
    init?(url: String) {
        guard let origin = HTTPOrigin(url: url) else { return nil }
        self.init(host: origin.host, port: origin.port)
    }

    /// The value of the first key that is there: `host:port`, `host`, `*:port`, `*`.
    func entry<Value>(in table: RouteTable<Value>) -> Value? {
        let host = host.comparableHost
        let values = table.values
        return values["\(host.bracketed):\(port)"] ?? values[host] ?? values["*:\(port)"] ?? values["*"]
    }

    /// The target that a value of ``TransferOptions/connectTo`` names; `nil` if it names none.
    func moved(to value: String) -> RouteTarget? {
        guard let (name, number) = Self.split(value) else { return nil }
        guard !name.isEmpty else { return number.map { RouteTarget(host: host, port: $0) } }
        guard let host = URLHost.comparable(ifValid: String(name)) else { return nil }
        // A name with the dot of the root is resolved without search domains.
        return RouteTarget(host: name.utf8.last == UInt8(ascii: ".") ? host + "." : host, port: number ?? port)
    }

    /// Splits `host:port`, `host` and `:port`, with an IPv6 address in brackets if it has a port; `nil` if the port is not a number of one.
    static func split(_ text: String) -> (name: Substring, port: Int?)? {
        let (bytes, colon) = (text.utf8, UInt8(ascii: ":"))
        var end = text.endIndex
        if bytes.first == UInt8(ascii: "[") {
            guard let bracket = bytes.lastIndex(of: UInt8(ascii: "]")) else { return nil }
            end = bytes.index(after: bracket)
        } else if let last = bytes.lastIndex(of: colon), bytes.firstIndex(of: colon) == last {
            end = last
        }
        guard end < text.endIndex else { return (text[...], nil) }
        let digits = bytes[end...].dropFirst()
        guard bytes[end] == colon, digits.allSatisfy({ $0.isASCIIDigit }), let port = Int(String(Substring(digits))),
            (1...65_535).contains(port)
        else { return nil }
        return (text[..<end], port)
    }
}

/// The entries of ``TransferOptions/resolve`` or ``TransferOptions/connectTo``.
package struct RouteTable<Value: Sendable & Hashable>: Sendable, Hashable {
    /// With the keys as given.
    package let entries: [String: Value]
    /// By keys with hosts in the form in which they are compared.
    let values: [String: Value]
    /// A key that matches no host; `nil` if there is none.
    let unusableKey: String?

    package init(_ entries: [String: Value]) {
        var (values, unusable): ([String: Value], [String]) = ([:], [])
        // In one order, so that of contradicting spellings the same one counts in each process.
        for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
            guard let normal = Self.normal(key) else {
                unusable.append(key)
                continue
            }
            // Of several spellings of one host the normal one counts.
            if values[normal] == nil || key == normal { values[normal] = value }
        }
        self.entries = entries
        self.values = values
        unusableKey = unusable.min()
    }

    private static func normal(_ key: String) -> String? {
        guard let (name, port) = RouteTarget.split(key) else { return nil }
        guard name != "*" else { return key }
        guard let host = URLHost.comparable(ifValid: String(name)), !host.utf8.contains(UInt8(ascii: "*")) else { return nil }
        return port.map { "\(host.bracketed):\($0)" } ?? host
    }
}

/// What is known of a transfer's route before it is started.
enum RouteDecision {
    /// The URL's host, resolved as usual.
    case usual
    case route(Route)
    /// The resolver has to be asked about a host.
    case ask(HostResolver, RouteTarget)

    /// - Parameter resolved: the addresses that the resolver has returned; `nil` if it was not asked.
    init(to url: String, proxy: Proxy?, options: ReachOptions, resolved: [String]?) {
        self = .usual
        let routing = options.routing
        guard proxy == nil, routing.unixSocket == nil, routing.resolve != nil || routing.connectTo != nil || routing.resolver != nil,
            let origin = RouteTarget(url: url)
        else { return }
        let target = routing.connectTo.flatMap { origin.entry(in: $0) }.flatMap { origin.moved(to: $0) } ?? origin
        if let addresses = routing.resolve.flatMap({ target.entry(in: $0) }) ?? resolved {
            self = .route(Route(to: target, addresses: addresses))
        } else if let resolver = routing.resolver, NetworkAddress(target.host) == nil {
            self = .ask(resolver, target)
        } else if target != origin {
            self = .route(Route(to: target))
        }
    }
}

// MARK: - Validation

extension ReachOptions {
    /// The longest path of a socket: `sun_path` without its NUL.
    private static let longestSocketName = 107

    /// Whether the route of a transfer may depend on its host.
    var hasRoutes: Bool {
        routing.resolve != nil || routing.connectTo != nil || routing.resolver != nil || alternativeServices != nil
    }

    /// Why the options can't be used; `nil` if they can.
    var invalidity: String? {
        if let socket = routing.unixSocket, let reason = Self.invalidity(of: socket) { return reason }
        for (option, key) in [("resolve", routing.resolve?.unusableKey), ("connectTo", routing.connectTo?.unusableKey)] {
            if let key { return "The key \"\(key)\" of `\(option)` matches no host: write host:port, host, *:port or *" }
        }
        for (name, addresses) in routing.resolve?.entries ?? [:] {
            guard !addresses.isEmpty else { return "The entry of \"\(name)\" in `resolve` has no addresses" }
            for address in addresses where NetworkAddress(address) == nil {
                return "The entry of \"\(name)\" in `resolve` has \"\(address)\", which is not an address"
            }
        }
        for (name, value) in routing.connectTo?.entries ?? [:] where RouteTarget(host: "*", port: 1).moved(to: value) == nil {
            return "The entry of \"\(name)\" in `connectTo` is \"\(value)\", which is not a host with a port"
        }
        if let localPorts, localPorts.lowerBound < 1 || localPorts.upperBound > 65_535 {
            return "The local ports \(localPorts) are not within 1...65535"
        }
        if let dohURL, HTTPOrigin(url: dohURL)?.scheme != "https" || dohURL.utf8.contains(0) {
            return "The URL of the server that resolves names is not an https URL: \(dohURL.redactedURL)"
        }
        return socket.invalidity
    }

    private static func invalidity(of socket: UnixSocket) -> String? {
        let name = socket.name.utf8
        guard !name.isEmpty, !name.contains(0) else { return "The path of the Unix domain socket is empty or contains a NUL" }
        guard name.count <= longestSocketName else {
            return "The path of the Unix domain socket has \(name.count) bytes, at most \(longestSocketName) are possible"
        }
        if case .abstract = socket, !SystemSocket.hasAbstractNames { return "This system has no abstract Unix domain sockets" }
        return nil
    }
}

extension SocketOptions {
    fileprivate var invalidity: String? {
        if let dscp, !(0...63).contains(dscp) { return "The code point of differentiated services \(dscp) is not within 0...63" }
        if let keepAlive, keepAlive.idle < .seconds(1) || keepAlive.interval < .seconds(1) || (keepAlive.count ?? 1) < 1 {
            return "The times of TCP's keep-alive are not at least a second, or its count is not at least 1"
        }
        for size in [sendBufferSize, receiveBufferSize] {
            if let size, !(1...Int(Int32.max)).contains(size) {
                return "The size of a socket's buffer \(size) is not within 1...\(Int32.max)"
            }
        }
        return nil
    }
}
