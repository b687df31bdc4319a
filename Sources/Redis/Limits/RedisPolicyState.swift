// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
public import CurlewResilience

/// Tells the processes of a fleet what the circuit breakers and retry budgets of each have found, by a channel of the server.
///
/// While the server is away nothing is told, and every policy works by itself, as without this. A process that starts later, or was away,
/// learns of the next change only.
///
/// Thread-safe.
public struct RedisPolicyState: SharedPolicyState {
    private let client: RedisClient
    private let channel: String

    /// Creates the state of a fleet. Processes with the same prefix and name share it.
    public init(_ client: RedisClient, name: String = "default") {
        self.client = client
        channel = client.key("policies1", name)
    }

    /// Tells the others; returns at once. A change that can't be told is dropped.
    public func tell(_ change: SharedChange) {
        // Encoding a text and a number fails for numbers that JSON has not, which are no durations.
        guard let data = try? JSONEncoder().encode(change) else { return }
        client.submit(["PUBLISH", .text(channel), .bytes(data)]) { _ in }
    }

    /// Calls `receive` on the client's thread for each change told by any process, until the returned object is released. Messages that are no
    /// changes are ignored.
    public func subscribe(_ receive: @escaping @Sendable (SharedChange) -> Void) -> any AnyObject & Sendable {
        client.subscribe(to: channel) { event in
            guard case .message(let data) = event, let change = try? JSONDecoder().decode(SharedChange.self, from: data) else { return }
            receive(change)
        }
    }
}
#endif
