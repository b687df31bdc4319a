// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The credentials of a role that a token of another identity provider may assume, as that of a service account of Kubernetes
/// (`AssumeRoleWithWebIdentity` of AWS's Security Token Service).
///
/// The token is read from its file for each request, as others replace it. The request is sent to the region's endpoint, without credentials:
/// `https://sts.REGION.amazonaws.com`, with the suffix `.cn` in China, and `https://sts.amazonaws.com` without a region. Another one is in
/// `AWS_ENDPOINT_URL_STS`, or in `AWS_ENDPOINT_URL`, for servers with the interface of AWS; it has to be `https`, or on this computer.
///
/// The credentials are kept, and replaced from five minutes before they expire, once for all that ask; they are used until then if the
/// service fails. Copies share them.
public struct AWSWebIdentityCredentials: AWSCredentialsProvider {
    private let shared: SharedCredentials

    /// Creates a provider for what the environment names.
    ///
    /// - Parameters:
    ///   - environment: by default that of the process, as it is now. `AWS_WEB_IDENTITY_TOKEN_FILE` is the path of the token,
    ///     `AWS_ROLE_ARN` the role, `AWS_ROLE_SESSION_NAME` the name of the session in logs, which is made up without it; `AWS_REGION` or
    ///     `AWS_DEFAULT_REGION` is the region.
    ///   - duration: how long the credentials are valid, in whole seconds from 15 minutes to 12 hours; `nil`, the default, for an hour, or
    ///     what the role says.
    ///   - timeout: the longest time of an attempt; 10 seconds by default.
    ///   - attempts: the most attempts to ask, after failed transfers, statuses such as 503, and `IDPCommunicationError`; 3 by default.
    ///   - options: the options of transfers, such as TLS and the proxy, which is used for `https` only.
    public init(
        environment: [String: String] = ProcessInfo.processInfo.environment, duration: Duration? = nil, timeout: Duration = .seconds(10),
        attempts: Int = 3, options: TransferOptions = TransferOptions()
    ) {
        let source = Result { () throws(AWSCredentialsError) in
            try Source(environment.filter { !$0.value.isEmpty }, duration, timeout, attempts, options)
        }
        shared = SharedCredentials { try await source.get().credentials() }
    }

    /// Returns the credentials.
    ///
    /// - Throws: ``AWSCredentialsError``: ``AWSCredentialsError/notFound(_:)`` if the environment names no file of a token;
    ///   `CancellationError`.
    public func credentials() async throws -> AWSCredentials { try await shared.credentials() }

    /// The URL of the service.
    static func url(in environment: [String: String]) throws(AWSCredentialsError) -> String {
        for name in ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"] {
            guard let url = environment[name] else { continue }
            guard HTTPOrigin(url: url) != nil, !url.utf8.contains(where: { "@?#".utf8.contains($0) }) else {
                throw .invalidVariable(name)
            }
            guard url.isProtectedURL else { throw .forbiddenEndpoint(name) }
            return url.hasByteSuffix("/") ? url : "\(url)/"
        }
        let name = environment["AWS_REGION"] == nil ? "AWS_DEFAULT_REGION" : "AWS_REGION"
        guard let region = environment[name] else { return "https://sts.amazonaws.com/" }
        guard region.utf8.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: "-") || (0x61...0x7A).contains($0) }) else {
            throw .invalidVariable(name)
        }
        return "https://sts.\(region).amazonaws.com\(region.hasBytePrefix("cn-") ? ".cn" : "")/"
    }

    private struct Source: Sendable {
        private let endpoint: CredentialsEndpoint
        private let tokenFile: String
        private let form: [String: String]

        init(
            _ environment: [String: String], _ duration: Duration?, _ timeout: Duration, _ attempts: Int, _ options: TransferOptions
        ) throws(AWSCredentialsError) {
            guard let tokenFile = environment["AWS_WEB_IDENTITY_TOKEN_FILE"] else {
                throw .notFound(["the environment has no AWS_WEB_IDENTITY_TOKEN_FILE"])
            }
            guard let role = environment["AWS_ROLE_ARN"] else { throw .invalidVariable("AWS_ROLE_ARN") }
            let session = environment["AWS_ROLE_SESSION_NAME"] ?? "curlew-\(String.makeToken())"
            guard (2...64).contains(session.utf8.count), session.utf8.allSatisfy(\.isNameOfRole) else {
                throw .invalidVariable("AWS_ROLE_SESSION_NAME")
            }
            var form = [
                "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": role, "RoleSessionName": session,
            ]
            if let duration { form["DurationSeconds"] = "\(min(max(duration.components.seconds, 900), 43_200))" }
            (self.tokenFile, self.form) = (tokenFile, form)
            endpoint = CredentialsEndpoint(
                "AWS STS", at: try AWSWebIdentityCredentials.url(in: environment), timeout: timeout, attempts: attempts, options: options)
        }

        func credentials() async throws -> AWSCredentials {
            var form = form
            form["WebIdentityToken"] = try AWSTokenFile.read(tokenFile)
            var response = try await endpoint.send(.post, headers: [.accept("text/xml")], form: form)
            var texts = STSTexts(response.body)
            // The service could not reach the provider of identities, for which it has the status of a wrong request.
            for retry in 1..<endpoint.attempts where texts?["Code"]?.hasSameBytes(as: "IDPCommunicationError") == true {
                let delay = CredentialsEndpoint.backoff.delay(after: retry - 1, jitter: .random(in: 0...1))
                try await Task.sleep(for: .seconds(delay))
                response = try await endpoint.send(.post, headers: [.accept("text/xml")], form: form)
                texts = STSTexts(response.body)
            }
            let place = endpoint.place
            guard let texts else {
                guard response.status == 200 else { throw AWSCredentialsError.refused(place, statusCode: response.status, code: nil) }
                throw AWSCredentialsError.invalidResponse(place, reason: "it is no XML of the service")
            }
            guard response.status == 200 else {
                throw AWSCredentialsError.refused(place, statusCode: response.status, code: AWSCredentialsError.code(texts["Code"]))
            }
            let names = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"]
            let parts = Dictionary(uniqueKeysWithValues: names.compactMap { name in texts[name].map { (name, $0) } })
            return try AWSCredentials(parts, token: "SessionToken", in: response, from: place)
        }
    }
}

// MARK: - XML

/// The texts of the elements of a short document in which each element has either a text or elements, as those of STS. Of several with one
/// name, the first counts.
///
/// Read in one pass. A document with a declaration of its type, and with that of entities, a comment or CDATA is none of these, and so is
/// one whose elements are not closed in their order.
struct STSTexts {
    private var texts: [String: String] = [:]

    /// `nil` for another document.
    init?(_ body: Data) {
        guard let text = String(validating: body, as: UTF8.self) else { return nil }
        var rest = text.utf8[...]
        var open: [String] = []
        var hasElement = false
        while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
            let content = rest[..<start]
            guard let end = rest[start...].firstIndex(of: UInt8(ascii: ">")) else { return nil }
            let tag = rest[rest.index(after: start)..<end]
            rest = rest[rest.index(after: end)...]
            switch tag.first {
            case UInt8(ascii: "?"):
                guard !hasElement else { return nil }
            case UInt8(ascii: "!"), nil: return nil
            case UInt8(ascii: "/"):
                guard let name = open.popLast(), tag.dropFirst().elementsEqual(name.utf8) else { return nil }
                if texts[name] == nil { texts[name] = Self.unescaped(content) }
            default:
                guard open.count < 16, !hasElement || !open.isEmpty else { return nil }
                hasElement = true
                let name = String(decoding: tag.prefix { !$0.isSpace && $0 != UInt8(ascii: "/") }, as: UTF8.self)
                if tag.last != UInt8(ascii: "/") { open.append(name) }
            }
        }
        guard hasElement, open.isEmpty else { return nil }
    }

    /// The text of an element; `nil` without one.
    subscript(name: String) -> String? { texts[name] }

    private static func unescaped(_ content: Substring.UTF8View) -> String {
        let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        return entities.reduce(String(decoding: content, as: UTF8.self)) { $0.replacingScalars($1.0, with: $1.1) }
    }
}

// MARK: - Descriptions

extension AWSWebIdentityCredentials: CustomStringConvertible, RedactedReflectable {
    /// The name of the type; no credentials.
    public var description: String { "AWSWebIdentityCredentials()" }
}
