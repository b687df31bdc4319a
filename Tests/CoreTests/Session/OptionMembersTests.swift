// SPDX-License-Identifier: Apache-2.0
import CurlewTransport
import Testing

@testable import CurlewCore

/// A property of the configuration that shows a member of its options or connections.
private struct Member: Sendable {
    let name: String
    /// Whether a value set on either side is read on the other one.
    let isShown: @Sendable () -> Bool

    static func option<Value: Equatable & Sendable>(
        _ name: String, _ property: @escaping @Sendable @autoclosure () -> WritableKeyPath<SessionConfiguration, Value>,
        _ option: @escaping @Sendable @autoclosure () -> WritableKeyPath<TransferOptions, Value>, _ value: Value
    ) -> Member {
        let options: @Sendable () -> WritableKeyPath<SessionConfiguration, TransferOptions> = { \.options }
        return member(name, property, { options().appending(path: option()) }, value)
    }

    static func connection<Value: Equatable & Sendable>(
        _ name: String, _ property: @escaping @Sendable @autoclosure () -> WritableKeyPath<SessionConfiguration, Value>,
        _ member: @escaping @Sendable @autoclosure () -> WritableKeyPath<TransportConfiguration, Value>, _ value: Value
    ) -> Member {
        let connections: @Sendable () -> WritableKeyPath<SessionConfiguration, TransportConfiguration> = { \.connections }
        return self.member(name, property, { connections().appending(path: member()) }, value)
    }

    private static func member<Value: Equatable & Sendable>(
        _ name: String, _ property: @escaping @Sendable () -> WritableKeyPath<SessionConfiguration, Value>,
        _ shown: @escaping @Sendable () -> WritableKeyPath<SessionConfiguration, Value>, _ value: Value
    ) -> Member {
        Member(name: name) {
            var (here, there) = (SessionConfiguration(), SessionConfiguration())
            let byDefault = here[keyPath: shown()]
            guard byDefault != value, here[keyPath: property()] == byDefault else { return false }
            here[keyPath: property()] = value
            there[keyPath: shown()] = value
            return here[keyPath: shown()] == value && there[keyPath: property()] == value && here.options == there.options
                && here.connections == there.connections
        }
    }
}

private var strictTLS: TLSOptions {
    var tls = TLSOptions()
    tls.minimumVersion = .v1_3
    return tls
}

private let alternatives = AlternativeServices()

private let resolver = HostResolver { _, _ in [] }

private var markedSocket: SocketOptions {
    var socket = SocketOptions()
    socket.mark = 7
    return socket
}

private let options: [Member] = [
    .option("connectTimeout", \.connectTimeout, \.connectTimeout, .seconds(1)),
    .option("firstByteTimeout", \.firstByteTimeout, \.firstByteTimeout, .seconds(1)),
    .option("idleTimeout", \.idleTimeout, \.idleTimeout, .seconds(1)),
    .option("totalTimeout", \.totalTimeout, \.totalTimeout, .seconds(1)),
    .option("queueTimeout", \.queueTimeout, \.queueTimeout, .seconds(1)),
    .option("httpVersion", \.httpVersion, \.httpVersion, .http1),
    .option("tls", \.tls, \.tls, strictTLS),
    .option("proxy", \.proxy, \.proxy, .none),
    .option("interface", \.interface, \.interface, "eth7"),
    .option("addresses", \.addresses, \.addresses, .publicOnly),
    .option("decodesContent", \.decodesContent, \.decodesContent, false),
    .option("maximumExpansion", \.maximumExpansion, \.maximumExpansion, 2),
    .option("maximumHeadSize", \.maximumHeadSize, \.maximumHeadSize, 2),
    .option("maximumHeaderSize", \.maximumHeaderSize, \.maximumHeaderSize, 2),
    .option("maximumHeaderCount", \.maximumHeaderCount, \.maximumHeaderCount, 2),
    .option("maximumInterimResponses", \.maximumInterimResponses, \.maximumInterimResponses, 2),
    .option("unixSocketPath", \.unixSocketPath, \.unixSocketPath, "/a"),
    .option("resolve", \.resolve, \.resolve, ["*": ["::1"]]),
    .option("connectTo", \.connectTo, \.connectTo, ["*": ":80"]),
    .option("resolver", \.resolver, \.resolver, resolver),
    .option("ipVersion", \.ipVersion, \.ipVersion, .v6),
    .option("connectionAttemptDelay", \.connectionAttemptDelay, \.connectionAttemptDelay, .seconds(1)),
    .option("localPorts", \.localPorts, \.localPorts, 7...8),
    .option("socket", \.socket, \.socket, markedSocket),
    .option("dohURL", \.dohURL, \.dohURL, "https://192.0.2.1/dns-query"),
    .option("dohVerifiesServer", \.dohVerifiesServer, \.dohVerifiesServer, false),
    .option("alternativeServices", \.alternativeServices, \.alternativeServices, alternatives),
    .option("abstractUnixSocket", \.abstractUnixSocket, \.abstractUnixSocket, "a"),
]

private let connections: [Member] = [
    .connection("maximumConnectionsPerHost", \.maximumConnectionsPerHost, \.maximumConnectionsPerHost, 2),
    .connection("maximumIdleConnections", \.maximumIdleConnections, \.maximumIdleConnections, 2),
    .connection("maximumIdleTime", \.maximumIdleTime, \.maximumIdleTime, .seconds(2)),
    .connection("multiplexes", \.multiplexes, \.multiplexes, true),
    .connection("loops", \.loops, \.loops, 2),
]

/// The members of the options and of the connections are properties of the configuration, one by one.
@Suite struct OptionMembersTests {
    @Test func `every option of transfers is a property of the configuration`() {
        // Those that few sessions set are behind one reference, and the name of an abstract socket is another form of `unixSocketPath`.
        let common = labels(of: TransferOptions()).filter { $0 != "reachBox" }
        let rare = labels(of: ReachOptions()).flatMap { label in
            label == "routing" ? labels(of: RoutingOptions()).map { $0 == "unixSocket" ? "unixSocketPath" : $0 } : [label]
        }
        #expect(options.map(\.name) == common + rare + ["abstractUnixSocket"])
    }

    @Test func `every option of connections is a property of the configuration`() {
        #expect(connections.map(\.name) == labels(of: TransportConfiguration()))
    }

    @Test(arguments: options + connections) private func `a value set on either side is read on the other`(_ member: Member) {
        #expect(member.isShown(), "\(member.name)")
    }

    @Test func `members of members are set in place`() {
        var configuration = SessionConfiguration()
        configuration.tls.minimumVersion = .v1_3
        configuration.tls.requiresStapledResponse = true
        #expect(configuration.options.tls.minimumVersion == .v1_3)
        #expect(configuration.options.tls.requiresStapledResponse)
    }

    private func labels(of value: some Any) -> [String] { Mirror(reflecting: value).children.compactMap(\.label) }
}
