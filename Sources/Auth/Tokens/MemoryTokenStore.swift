// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
import CurlewHTTP

/// Keeps a credential in memory, for the authenticators of a process that share it. No description shows it.
public final class MemoryTokenStore<Credential: Sendable>: TokenStore {
    private let stored: Lock<Credential?>
    private let queue = AsyncQueue()

    /// Creates a store, by default without a credential.
    public init(_ credential: Credential? = nil) { stored = Lock(credential) }

    /// Returns the credential.
    public func credential() async -> Credential? { stored.withLock { $0 } }

    /// Changes the credential, after the changes before it.
    @discardableResult
    public func update(_ change: @escaping @Sendable (Credential?) async throws -> Credential?) async throws -> Credential? {
        try await queue.run { [stored] in
            let changed = try await change(stored.withLock { $0 })
            stored.withLock { $0 = changed }
            return changed
        }
    }
}

extension TokenStore where Self == MemoryTokenStore<OAuthTokens> {
    /// Keeps tokens in memory.
    public static var memory: MemoryTokenStore<OAuthTokens> { MemoryTokenStore() }
}
