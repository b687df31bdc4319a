// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The event loop that the process's sessions share, so that a session costs no thread: programs make one for each library.
///
/// Each session has its part of it (`SharedTransport`), with connections and limits of its own. The loop's thread begins with the first
/// transfer and ends with the last session. Sessions with several loops share those of the sessions with equal `connections`; one whose
/// monitors or instruments follow connections has a loop of its own.
enum SharedLoop {
    private struct Running {
        weak var transport: CurlTransport?
    }

    /// What sessions have to agree in, to share a loop: everything else is a session's own.
    private static let loops = Lock<[TransportConfiguration: Running]>([:])

    /// Returns the transport of a new session.
    static func transport(for configuration: SessionConfiguration) -> any Transport {
        let connections = configuration.connections
        guard !configuration.followsConnections else { return CurlTransport(configuration: connections) }
        let key = connections.loops > 1 ? connections : TransportConfiguration()
        let base = loops.withLock { loops in
            if let running = loops[key]?.transport { return running }
            loops = loops.filter { $0.value.transport != nil }
            let base = CurlTransport(configuration: key)
            loops[key] = Running(transport: base)
            return base
        }
        return SharedTransport(base, configuration: connections)
    }
}
