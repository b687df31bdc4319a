// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension RedisConfiguration {
    /// What authenticates with the servers of the data.
    var dataCredentials: RedisCredentials? { credentials ?? password.map { RedisCredentials(username: username, password: $0) } }

    /// Throws for settings that can't work.
    func check() throws(RedisError) {
        try address.check()
        try require(password != nil || username == nil, "A user without a password can't be authenticated.")
        try require(credentials == nil || password == nil, "Either a password or credentials are needed, not both.")
        try require(database >= 0, "The number of a database is not negative: \(database)")
        try require(!prefix.isEmpty, "The prefix of the keys is empty.")
        if case .cluster = address {
            try require(database == 0, "A cluster has no database but 0: \(database)")
            // The first braces of a key are its hash tag, unless they are empty: then the keys of one name are in different slots.
            let isWhole = !prefix.utf8.contains(UInt8(ascii: "{")) || HashSlot.tag(of: prefix.utf8) != nil
            try require(isWhole, "The prefix of a cluster's keys has braces that are empty or not closed: \(prefix)")
        }
        for time in [commandTimeout, connectTimeout, maximumBackoff, silenceLimit] {
            try require(time >= .milliseconds(1), "A time limit of \(time) is below 1 millisecond.")
        }
        try require(maximumPending > 0 && maximumResponseSize > 0, "The limits of commands and responses have to be above 0.")
    }
}

extension RedisConfiguration.Address {
    /// Throws for addresses that can't work.
    fileprivate func check() throws(RedisError) {
        switch self {
        case .unix(let path):
            try require(SocketAddress(path: path) != nil, "The path of a Unix socket has 1 to 103 bytes: \(path)")
        case .tcp(let host, let port), .tls(let host, let port):
            try require(!host.isEmpty && (1...65_535).contains(port), "A host and a port from 1 to 65,535 are needed: \(self)")
        case .sentinels(let servers, let master):
            try require(!master.isEmpty, "The name of the master is empty.")
            try Self.check(servers)
        case .cluster(let servers): try Self.check(servers)
        }
    }

    private static func check(_ servers: [Self]) throws(RedisError) {
        try require(
            (1...ClusterTopology.mostNodes).contains(servers.count), "Between 1 and 1,000 addresses are needed, not \(servers.count).")
        for server in servers {
            guard server.isHost else { throw .invalidSetting("Sentinels and nodes of a cluster have a host and a port: \(server)") }
            try server.check()
        }
        try require(Set(servers.map(\.isSecure)).count == 1, "Either all or none of the addresses have TLS.")
    }

    private var isHost: Bool {
        switch self {
        case .tcp, .tls: true
        case .unix, .sentinels, .cluster: false
        }
    }

    /// Whether TLS is used, for all of several.
    var isSecure: Bool {
        switch self {
        case .tls: true
        case .unix, .tcp: false
        case .sentinels(let servers, _), .cluster(let servers): servers.first?.isSecure ?? false
        }
    }
}

private func require(_ condition: Bool, _ message: String) throws(RedisError) { if !condition { throw .invalidSetting(message) } }
#endif
