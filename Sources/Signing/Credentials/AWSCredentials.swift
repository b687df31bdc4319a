// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The keys of a user or a role of AWS, with which requests are signed. Also the provider of itself.
public struct AWSCredentials: Sendable, Hashable {
    /// The identifier of the key, which is sent with each request.
    public let accessKeyID: String
    /// The key, which is never sent.
    public let secretAccessKey: String
    /// What is sent with requests signed with temporary credentials; `nil` for others, and if it is empty.
    public let sessionToken: String?
    /// The time at which temporary credentials expire, by this computer's clock; `nil` if that is unknown, or never.
    public let expiration: Date?

    /// Creates credentials, permanent ones by default.
    public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, expiration: Date? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken?.isEmpty == true ? nil : sessionToken
        self.expiration = expiration
    }
}

/// What finds the credentials of a program.
///
/// It may be asked before every request, from any thread, and by several requests at once: what asks a service keeps its answer.
public protocol AWSCredentialsProvider: Sendable {
    /// Returns credentials that are valid now.
    ///
    /// - Throws: ``AWSCredentialsError/notFound(_:)`` if this provider has none, upon which an ``AWSCredentialsChain`` asks the next one; any
    ///   other error ends the search.
    func credentials() async throws -> AWSCredentials
}

extension AWSCredentials: AWSCredentialsProvider {
    /// Returns these credentials.
    public func credentials() -> AWSCredentials { self }
}

/// Asks several providers, one after the other, until one has credentials.
public struct AWSCredentialsChain: AWSCredentialsProvider {
    /// The providers, in the order in which they are asked.
    public let providers: [any AWSCredentialsProvider]

    /// Creates a chain, by default in the order of AWS's programs: the environment, a web identity, the shared files, the container's agent,
    /// the instance. The last two are asked over the network, the instance only where nothing else has credentials.
    public init(
        _ providers: [any AWSCredentialsProvider] = [
            AWSEnvironmentCredentials(), AWSWebIdentityCredentials(), AWSProfileCredentials(), AWSContainerCredentials(),
            AWSInstanceCredentials(),
        ]
    ) {
        self.providers = providers
    }

    /// Returns the credentials of the first provider that has some.
    ///
    /// - Throws: ``AWSCredentialsError/notFound(_:)`` with all reasons if none has; the error of a provider whose credentials are there but
    ///   can't be used, so that a program does not act as another user then.
    public func credentials() async throws -> AWSCredentials {
        var reasons: [String] = []
        for provider in providers {
            do {
                return try await provider.credentials()
            } catch AWSCredentialsError.notFound(let others) {
                reasons += others
            }
        }
        throw AWSCredentialsError.notFound(reasons)
    }
}

// MARK: - Descriptions

extension AWSCredentials: CustomStringConvertible, CustomReflectable {
    /// The last four characters of the identifier, and the expiration; no secrets.
    public var description: String {
        let expires = expiration.map { ", expires \($0.formatted(.iso8601))" } ?? ""
        return "AWSCredentials(\(Redaction.escaped("…\(accessKeyID.suffix(accessKeyID.utf8.count < 16 ? 0 : 4))"))\(expires))"
    }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
