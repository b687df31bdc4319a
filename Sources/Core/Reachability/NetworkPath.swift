// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The interface by which packets leave this machine for a host or the network.
public struct NetworkPath: Sendable, Hashable {
    /// The name of the outgoing interface, such as `eth0`; `nil` without a route.
    public let interface: String?
    /// Whether that is a cellular interface.
    public let isCellular: Bool

    /// Creates a path. Without `isCellular`, interfaces whose names begin with `wwan`, `wwp`, `rmnet` or `ppp`, as those of modems do, are
    /// cellular.
    public init(interface: String?, isCellular: Bool? = nil) {
        self.interface = interface
        self.isCellular = isCellular ?? Self.isCellular(interface ?? "")
    }

    /// Whether Linux drivers use such a name for modems.
    static func isCellular(_ interface: String) -> Bool {
        ["wwan", "wwp", "rmnet", "ppp"].contains { interface.hasBytePrefix($0) }
    }
}

/// Reports the path to the network, or to one host, and its changes. Implement it to test code that uses a ``NetworkReachabilityManager``.
public protocol NetworkPathProvider: Sendable {
    /// Returns the current path; `nil` if the system does not report it. May block for as long as name resolution takes.
    func currentPath() -> NetworkPath?

    /// Returns a stream with an element for each later change of the network, which may leave the path as it was; `nil` if the system does
    /// not report changes.
    func changes() -> AsyncStream<Void>?
}
