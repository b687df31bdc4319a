// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
public import CurlewTransport

/// Where a Redis or Valkey server is, and how ``RedisClient`` talks to it. RESP2, servers from version 5.0 on.
public struct RedisConfiguration: Sendable, Hashable {
    /// The address of a server, or of those that know where it is.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum Address: Sendable, Hashable {
        /// A Unix socket, by its path of at most 103 bytes.
        case unix(path: String)
        /// A host's name or address, and its port, 6379 by default. Not encrypted.
        case tcp(host: String, port: Int = 6379)
        /// As ``tcp(host:port:)``, encrypted, by libcurl with ``RedisConfiguration/tls``; to the server itself, never through a proxy.
        case tls(host: String, port: Int = 6379)
        /// The master of this name, where Redis Sentinel has it: the addresses are those of the sentinels (their default port is 26379), with
        /// or without TLS, all alike. Any one that responds is enough; list all. See ``RedisConfiguration/masterUsesTLS`` for the master.
        case sentinels([Address], master: String)
        /// A Redis Cluster, by the addresses of some of its nodes, with or without TLS, all alike: the others are learned from these, and are
        /// reached in the same way.
        case cluster([Address])
    }

    /// Where the server is.
    public var address: Address
    /// The TLS settings of ``Address/tls(host:port:)``: authorities, a client certificate, pins, versions. By default the server needs a
    /// certificate that the system trusts, for the host of the address, and the client sends none. Nodes that sentinels or a cluster name by
    /// their IP addresses need certificates for these, or have to announce their host names (`sentinel announce-hostnames`,
    /// `cluster-preferred-endpoint-type hostname`).
    public var tls = TLSOptions()
    /// Whether the master that sentinels name is reached with TLS; by default as the sentinels are. Without meaning for other addresses.
    public var masterUsesTLS: Bool?
    /// The user of `AUTH`; by default none, which is the server's user `default`.
    public var username: String?
    /// The password of `AUTH`; by default none, and nothing is authenticated.
    public var password: String?
    /// Authenticates instead of ``username`` and ``password``, with a password that may change; none by default.
    public var credentials: RedisCredentials?
    /// Authenticates with the sentinels; none by default, as theirs are not those of the master.
    public var sentinelCredentials: RedisCredentials?
    /// The number of the database, for `SELECT`; 0 by default, the only one of a cluster.
    public var database = 0
    /// What all keys and channels begin with; `curlew` by default. Programs with one prefix share what has the same names.
    public var prefix = "curlew"
    /// The longest that anything waits for the server; 20 milliseconds by default. A command that takes longer fails with
    /// ``RedisError/timedOut(command:after:)``, and until the server responds again others fail at once.
    public var commandTimeout: Duration = .milliseconds(20)
    /// The longest that a connection may take to be established, authenticated and checked; 1 second by default. Commands wait for it no
    /// longer than ``commandTimeout``.
    public var connectTimeout: Duration = .seconds(1)
    /// The longest time between two attempts to connect; 1 second by default. The first follows after 10 milliseconds, later ones after
    /// twice as long each, with up to half of that taken away at random.
    public var maximumBackoff: Duration = .seconds(1)
    /// How long a connection may be silent while a response is due before it is replaced; 1 second by default.
    public var silenceLimit: Duration = .seconds(1)
    /// The most commands that wait for responses; 10,000 by default. Others fail with ``RedisError/overloaded(limit:)``.
    public var maximumPending = 10_000
    /// The size of the largest response, in bytes; 64 MiB by default. A larger one ends the connection.
    public var maximumResponseSize = 64 << 20

    /// Creates a configuration with defaults.
    public init(_ address: Address) {
        self.address = address
    }
}

extension RedisConfiguration.Address: CustomStringConvertible {
    /// The path, or `host:port`; for several, what they are.
    public var description: String {
        switch self {
        case .unix(let path): path
        case .tcp(let host, let port), .tls(let host, let port): "\(host.bracketed):\(port)"
        case .sentinels(let sentinels, let master): "\(master) of \(Self.list(sentinels))"
        case .cluster(let nodes): "the cluster of \(Self.list(nodes))"
        }
    }

    private static func list(_ addresses: [Self]) -> String { addresses.map(\.description).joined(separator: ", ") }
}

extension RedisConfiguration: CustomReflectable, CustomStringConvertible {
    /// The address; never the password.
    public var description: String { "RedisConfiguration(\(address))" }

    /// Without the password.
    public var customMirror: Mirror {
        Mirror(self, children: ["address": address, "database": database, "prefix": prefix], displayStyle: .struct)
    }
}
#endif
