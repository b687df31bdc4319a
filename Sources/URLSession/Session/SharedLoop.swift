// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The event loop that the process's sessions share, so that a session costs no thread: programs make one for each library.
///
/// Each session has its part of it (`SharedTransport`), with connections and limits of its own. The loop's thread begins with the first
/// transfer and ends with the last session. A session with several loops, or whose monitors or instruments follow connections, has its own.
enum SharedLoop {
    private struct Running {
        weak var transport: CurlTransport?
    }

    private static let running = Lock(Running())

    /// Returns the transport of a new session.
    static func transport(for configuration: SessionConfiguration) -> any Transport {
        let connections = configuration.connections
        guard !configuration.followsConnections, connections.loops <= 1 else { return CurlTransport(configuration: connections) }
        let base = running.withLock { running in
            if let transport = running.transport { return transport }
            let base = CurlTransport()
            running.transport = base
            return base
        }
        return SharedTransport(base, configuration: connections)
    }
}
