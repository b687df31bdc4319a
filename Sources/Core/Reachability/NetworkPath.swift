// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The way that packets take from this machine.
public struct NetworkPath: Sendable, Hashable {
    /// The name of the interface by which they leave, such as `eth0`; `nil` when no way leads there.
    public let interface: String?
    /// Whether that is a mobile network's.
    public let isCellular: Bool

    /// Makes a path. Whether it is a mobile network's follows from the interface's name unless it is said: those of modems begin with
    /// `wwan`, `wwp`, `rmnet` or `ppp`.
    public init(interface: String?, isCellular: Bool? = nil) {
        self.interface = interface
        self.isCellular = isCellular ?? Self.isCellular(interface ?? "")
    }

    /// Whether the system's drivers give such names to modems.
    static func isCellular(_ interface: String) -> Bool {
        ["wwan", "wwp", "rmnet", "ppp"].contains { interface.hasPrefix($0) }
    }
}

/// Knows the way to the network, or to one host, and when it changes. Tests give a ``NetworkReachabilityManager`` one of their own.
public protocol NetworkPathProvider: Sendable {
    /// The path now; `nil` when the system does not tell. May block for as long as resolving a name takes.
    func currentPath() -> NetworkPath?

    /// An element for each change of the network from now on, whether or not it changes the path; `nil` when the system does not tell.
    func changes() -> AsyncStream<Void>?
}
