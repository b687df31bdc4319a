// SPDX-License-Identifier: Apache-2.0

/// Keeps the credential of an authenticator, in memory, in a file, or where several processes see it.
///
/// `CurlewAuth` has stores in memory and in a file, `CurlewRedis` an authenticator that shares credentials on a server. A store is
/// thread-safe.
public protocol TokenStore<Credential>: Sendable {
    /// The type of the credential.
    associatedtype Credential: Sendable

    /// Returns the stored credential; `nil` if there is none.
    func credential() async throws -> Credential?

    /// Changes the credential, while no other caller of `update` does, in this process or in another one that has the same store.
    ///
    /// `change` receives the credential as it is once the caller's turn has come, so that what another one has refreshed meanwhile is not
    /// refreshed again. It is neither cancelled with the calling task nor bounded by that task's ``Deadline/current``.
    ///
    /// - Parameter change: returns the credential to store; `nil` removes it. If it throws, the stored credential stays.
    /// - Returns: what `change` returned, which is stored by then.
    @discardableResult
    func update(_ change: @escaping @Sendable (Credential?) async throws -> Credential?) async throws -> Credential?

    /// Stores a credential in place of the one before, such as that of a sign-in, once the changes before have ended. By default an
    /// ``update(_:)``; a store whose content may be unreadable replaces it unread.
    func store(_ credential: Credential) async throws

    /// Removes the credential, as at a sign-out, once the changes before have ended. By default an ``update(_:)``; a store whose content
    /// may be unreadable removes it unread.
    func remove() async throws
}

extension TokenStore {
    /// Stores a credential by ``update(_:)``.
    public func store(_ credential: Credential) async throws { try await update { _ in credential } }

    /// Removes the credential by ``update(_:)``.
    public func remove() async throws { try await update { _ in nil } }
}
