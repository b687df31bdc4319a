// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Credentials in the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, and of temporary ones `AWS_SESSION_TOKEN` (or
/// `AWS_SECURITY_TOKEN`) and `AWS_CREDENTIAL_EXPIRATION` (ISO 8601). Empty variables count as missing.
public struct AWSEnvironmentCredentials: AWSCredentialsProvider {
    private let environment: [String: String]

    /// Creates a provider for an environment: by default that of the process, as it is now.
    public init(_ environment: [String: String] = ProcessInfo.processInfo.environment) {
        self.environment = environment.filter { $0.key.hasBytePrefix("AWS_") && !$0.value.isEmpty }
    }

    /// Returns the credentials.
    ///
    /// - Throws: ``AWSCredentialsError/notFound(_:)`` without `AWS_ACCESS_KEY_ID`, ``AWSCredentialsError/invalidVariable(_:)`` if the key is
    ///   missing, or the expiration no date.
    public func credentials() throws -> AWSCredentials {
        guard let id = environment["AWS_ACCESS_KEY_ID"] else {
            throw AWSCredentialsError.notFound(["the environment has no AWS_ACCESS_KEY_ID"])
        }
        guard let key = environment["AWS_SECRET_ACCESS_KEY"] else { throw AWSCredentialsError.invalidVariable("AWS_SECRET_ACCESS_KEY") }
        let expiration = environment["AWS_CREDENTIAL_EXPIRATION"]
        let date = try expiration.map { text in
            guard let date = Date(iso8601: text) else { throw AWSCredentialsError.invalidVariable("AWS_CREDENTIAL_EXPIRATION") }
            return date
        }
        return AWSCredentials(
            accessKeyID: id, secretAccessKey: key, sessionToken: environment["AWS_SESSION_TOKEN"] ?? environment["AWS_SECURITY_TOKEN"],
            expiration: date)
    }
}

// MARK: - Descriptions

extension AWSEnvironmentCredentials: CustomStringConvertible, RedactedReflectable {
    /// The name of the type; no variables.
    public var description: String { "AWSEnvironmentCredentials()" }
}
