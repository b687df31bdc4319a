// SPDX-License-Identifier: Apache-2.0

/// Runs an operation; if it exceeds the timeout, cancels it and throws `error`.
package func withTimeout<R: Sendable>(
    _ timeout: Duration?, _ clock: any Clock<Duration>, throwing error: any Error, _ operation: @escaping @Sendable () async throws -> R
) async throws -> R {
    guard let timeout else { return try await operation() }
    return try await withLimit(throwing: error, operation) { try await clock.sleep(for: timeout) }
}

/// Runs an operation; if `limit` returns before it completes, cancels it and throws `error`.
package func withLimit<R: Sendable>(
    throwing error: any Error, _ operation: @escaping @Sendable () async throws -> R, limit: @escaping @Sendable () async throws -> Void
) async throws -> R {
    try await withThrowingTaskGroup(of: R?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await limit()
            return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next(), let result = first else { throw error }
        return result
    }
}
