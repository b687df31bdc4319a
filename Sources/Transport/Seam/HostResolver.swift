// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Resolves the names of hosts with code of the program: service discovery, a table, a DNS client.
///
/// ```swift
/// configuration.resolver = HostResolver { host, port in try await registry.addresses(of: host, port: port) }
/// ```
///
/// Called before each exchange with a named host, on a task of its own; the event loop is not blocked. It may cache: Curlew does not.
/// Connections are reused as long as the addresses are the same, in any order. The wait counts towards the connect timeout, the total timeout
/// and the deadline; the task is cancelled with the transfer, and after a timeout. An error that it throws, no addresses at all, or text that
/// is not an address fail the transfer with ``TransferFailure/Kind/nameResolution`` and a message that names the host and the reason.
public struct HostResolver: Sendable, ComparedByKey {
    private final class Body: Sendable {
        let resolve: @Sendable (String, Int) async throws -> [String]
        let token = String.makeToken()

        init(_ resolve: @escaping @Sendable (String, Int) async throws -> [String]) { self.resolve = resolve }
    }

    private let body: Body

    /// Creates a resolver, which is equal to its copies only.
    ///
    /// - Parameter resolve: returns the IPv4 and IPv6 addresses of a host, in lower case, for a port, in the order in which to try them.
    public init(_ resolve: @escaping @Sendable (_ host: String, _ port: Int) async throws -> [String]) {
        body = Body(resolve)
    }

    /// What no other resolver has.
    var token: String { body.token }

    func addresses(of host: String, port: Int) async throws -> [String] { try await body.resolve(host, port) }

    /// That of the closure: copies of a resolver are equal.
    package var comparisonKey: ObjectIdentifier { ObjectIdentifier(body) }
}
