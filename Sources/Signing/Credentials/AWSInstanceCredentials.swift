// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The credentials of an instance's role in EC2, by version 2 of its metadata service (IMDSv2).
///
/// A token is requested, then the name of the role, then its credentials; without a token nothing is: version 1, which a redirected or
/// forged request could use, is not. `AWS_EC2_METADATA_DISABLED=true` disables the provider, `AWS_EC2_METADATA_SERVICE_ENDPOINT` is another
/// address of the service, `AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6` the one by IPv6, and `AWS_METADATA_SERVICE_TIMEOUT` (in seconds) and
/// `AWS_METADATA_SERVICE_NUM_ATTEMPTS` replace the defaults of `timeout` and `attempts`. Redirects are refused, and no proxy is used.
///
/// A computer that is no instance has none of this: it is known after `timeout` at the latest, and is
/// ``AWSCredentialsError/notFound(_:)``, unless a variable has the service's address. So is an instance whose answers may not pass a
/// further network, as that of a container: their limit of hops (`HttpPutResponseHopLimit`) has to be 2 there.
///
/// The credentials are kept, and replaced from five minutes before they expire, once for all that ask; they are used until then if the
/// service fails. Copies share them.
public struct AWSInstanceCredentials: AWSCredentialsProvider {
    private let shared: SharedCredentials

    /// Creates a provider.
    ///
    /// - Parameters:
    ///   - environment: by default that of the process, as it is now.
    ///   - timeout: the longest time of an attempt; a second by default.
    ///   - attempts: the most attempts of each request, after statuses such as 503, and once there is a token after failed transfers; 3 by
    ///     default.
    public init(
        environment: [String: String] = ProcessInfo.processInfo.environment, timeout: Duration? = nil, attempts: Int? = nil
    ) {
        let source = Source(environment, timeout, attempts)
        shared = SharedCredentials { try await source.credentials() }
    }

    /// Returns the credentials.
    ///
    /// - Throws: ``AWSCredentialsError``: ``AWSCredentialsError/notFound(_:)`` if this is no instance, it has no role, or the provider is
    ///   disabled; `CancellationError`.
    public func credentials() async throws -> AWSCredentials { try await shared.credentials() }

    /// The URL of the service, without a slash at its end.
    static func url(in environment: [String: String]) throws(AWSCredentialsError) -> String {
        let name = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
        if let url = environment[name] {
            guard let origin = HTTPOrigin(url: url), ["http", "https"].contains(origin.scheme),
                !url.utf8.contains(where: { "@?#".utf8.contains($0) })
            else { throw .invalidVariable(name) }
            return url.hasByteSuffix("/") ? String(url.dropLastScalars(1)) : url
        }
        switch environment["\(name)_MODE"]?.lowercased() {
        case nil, "ipv4": return "http://169.254.169.254"
        case "ipv6": return "http://[fd00:ec2::254]"
        default: throw .invalidVariable("\(name)_MODE")
        }
    }

    private struct Source: Sendable {
        private struct Endpoints: Sendable {
            /// Whose failed transfers are not repeated: there may be no such service.
            let tokens: CredentialsEndpoint
            let documents: CredentialsEndpoint
            /// Whether a variable says that there is one.
            let areNamed: Bool
        }

        private let endpoints: Result<Endpoints, AWSCredentialsError>

        init(_ environment: [String: String], _ timeout: Duration?, _ attempts: Int?) {
            endpoints = Result { () throws(AWSCredentialsError) in
                let environment = environment.filter { !$0.value.isEmpty }
                guard environment["AWS_EC2_METADATA_DISABLED"]?.lowercased() != "true" else {
                    throw .notFound(["AWS_EC2_METADATA_DISABLED is true"])
                }
                let url = try AWSInstanceCredentials.url(in: environment)
                let seconds = try Self.number(in: environment, "AWS_METADATA_SERVICE_TIMEOUT")
                let count = try Self.number(in: environment, "AWS_METADATA_SERVICE_NUM_ATTEMPTS")
                var options = TransferOptions()
                options.proxy = .none
                func endpoint(retriesFailures: Bool) -> CredentialsEndpoint {
                    CredentialsEndpoint(
                        "the instance endpoint", at: url, timeout: timeout ?? .seconds(seconds ?? 1), attempts: attempts ?? count ?? 3,
                        retriesFailures: retriesFailures, options: options)
                }
                return Endpoints(
                    tokens: endpoint(retriesFailures: false), documents: endpoint(retriesFailures: true),
                    areNamed: environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] != nil)
            }
        }

        private static func number(in environment: [String: String], _ name: String) throws(AWSCredentialsError) -> Int? {
            guard let text = environment[name] else { return nil }
            guard let number = Int(text), (1...3600).contains(number) else { throw .invalidVariable(name) }
            return number
        }

        // MARK: The three requests

        /// How long a token is valid, in seconds: more than it takes to use it.
        private static let tokenLifetime = "60"
        private static let roles = "/latest/meta-data/iam/security-credentials/"

        func credentials() async throws -> AWSCredentials {
            let endpoints = try endpoints.get()
            let place = endpoints.tokens.place
            let token = HTTPHeader(name: "X-aws-ec2-metadata-token", value: try await token(endpoints))
            guard token.isValid else { throw AWSCredentialsError.invalidResponse(place, reason: "its token can't be sent in a header") }
            let roles = try await endpoints.documents.send(.get, Self.roles, headers: [token])
            if roles.status == 404 { throw AWSCredentialsError.notFound(["the instance has no role"]) }
            guard roles.status == 200 else { throw AWSCredentialsError.refused(place, statusCode: roles.status, code: nil) }
            guard let role = Self.role(in: roles.body) else {
                throw AWSCredentialsError.invalidResponse(place, reason: "it has no name of a role")
            }
            let document = try await endpoints.documents.send(.get, Self.roles + role, headers: [token])
            return try CredentialsDocument.credentials(in: document, from: place)
        }

        private func token(_ endpoints: Endpoints) async throws -> String {
            let endpoint = endpoints.tokens
            let response: CredentialsEndpoint.Response
            do {
                response = try await endpoint.send(
                    .put, "/latest/api/token",
                    headers: [HTTPHeader(name: "X-aws-ec2-metadata-token-ttl-seconds", value: Self.tokenLifetime)])
            } catch AWSCredentialsError.unreachable(let place, let reason) where !endpoints.areNamed {
                throw AWSCredentialsError.notFound(["\(place) can't be reached: \(reason)"])
            }
            switch response.status {
            case 200: break
            case 403, 404, 405: throw AWSCredentialsError.notFound(["\(endpoint.place) gives no token (status \(response.status))"])
            default: throw AWSCredentialsError.refused(endpoint.place, statusCode: response.status, code: nil)
            }
            guard let token = String(validating: response.body, as: UTF8.self)?.trimmingBlanks, !token.isEmpty else {
                throw AWSCredentialsError.invalidResponse(endpoint.place, reason: "it has no token")
            }
            return String(token)
        }

        /// The role's name, which IAM limits to 64 characters; `nil` if the first line is none, and so is a page of another server.
        private static func role(in body: Data) -> String? {
            let line = body.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
            guard (1...64).contains(line.count), line.allSatisfy({ $0.isNameOfRole }) else { return nil }
            return String(decoding: line, as: UTF8.self)
        }
    }
}

extension UInt8 {
    /// Whether the byte may be part of the name of a role or a session in IAM.
    var isNameOfRole: Bool {
        isASCIIDigit || (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) || "_+=,.@-".utf8.contains(self)
    }
}

// MARK: - Descriptions

extension AWSInstanceCredentials: CustomStringConvertible, RedactedReflectable {
    /// The name of the type; no credentials.
    public var description: String { "AWSInstanceCredentials()" }
}
