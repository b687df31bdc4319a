// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTransport

/// The transports of sessions.
enum SharedLoop {
    /// Returns the transport of a new session.
    static func transport(for configuration: SessionConfiguration) -> any Transport {
        CurlTransport(configuration: configuration.connections)
    }
}
