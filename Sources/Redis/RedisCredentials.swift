// SPDX-License-Identifier: Apache-2.0
#if Redis

/// What a connection authenticates with (`AUTH`): a user of the server's access control list, or its user `default`, and a password.
public struct RedisCredentials: Sendable, Hashable {
    /// A closure that returns a password, which is equal only to itself.
    private final class Source: Sendable, Hashable {
        let password: @Sendable () async throws -> String

        init(_ password: @escaping @Sendable () async throws -> String) { self.password = password }

        static func == (left: Source, right: Source) -> Bool { left === right }

        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    private enum Password: Sendable, Hashable {
        case text(String)
        case source(Source)
    }

    /// The user; `nil` for `default`.
    public var username: String?
    private let secret: Password

    /// A password that does not change.
    public init(username: String? = nil, password: String) {
        self.username = username
        secret = .text(password)
    }

    /// A password that changes, as that of a cloud's identities (IAM) or a vault does.
    ///
    /// - Parameters:
    ///   - username: the user; `nil`, the default, for `default`.
    ///   - password: returns the password that is valid now. Called for each connection, also after one has ended, on any thread, and
    ///     several times at once. An error, or a result that takes longer than ``RedisConfiguration/connectTimeout``, ends the attempt
    ///     with ``RedisError/Reason/credentialsFailed(_:)``, which has the error's text; the task is cancelled then, and the next attempt
    ///     follows after the backoff.
    public init(username: String? = nil, password: @escaping @Sendable () async throws -> String) {
        self.username = username
        secret = .source(Source(password))
    }

    /// The password that is known without a call; `nil` for one that a closure returns.
    var knownPassword: String? { if case .text(let text) = secret { text } else { nil } }

    /// Returns the password.
    func password() async throws -> String {
        switch secret {
        case .text(let text): text
        case .source(let source): try await source.password()
        }
    }
}

extension RedisCredentials: CustomReflectable, CustomStringConvertible {
    /// The user; never the password.
    public var description: String { "RedisCredentials(\(username ?? "default"))" }

    /// Without the password.
    public var customMirror: Mirror { Mirror(self, children: ["username": username as Any], displayStyle: .struct) }
}
#endif
