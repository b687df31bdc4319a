// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Asks a service for credentials: by a session of its own, without observers, which follows no redirect and reads short answers only.
struct CredentialsEndpoint: Sendable {
    /// A response that is not worth a repetition.
    struct Response: Sendable {
        let status: Int
        let body: Data
        /// By how much the service's clock is ahead of this computer's; zero if they differ by less than a minute, or that is not known.
        let clockOffset: Duration
    }

    /// The delays between attempts.
    static let backoff = Backoff(first: 0.2, limit: 2)
    /// The longest answer, in bytes.
    private static let maximumSize = 64 << 10

    /// The service in messages, such as `the container endpoint`.
    let name: String
    private let url: String
    /// The most attempts of a request.
    let attempts: Int
    private let policy: RetryPolicy
    private let timeout: Duration
    private let configuration: SessionConfiguration

    /// Creates an endpoint.
    ///
    /// - Parameters:
    ///   - name: the service in messages.
    ///   - url: its URL. Messages have its origin only, as the path may be a secret.
    ///   - timeout: the longest time of an attempt.
    ///   - attempts: the most attempts of a request; more than one after failed transfers and statuses such as 429 and 503.
    ///   - retriesFailures: whether a failed transfer is repeated.
    ///   - options: the options of transfers; a proxy is used for `https` only.
    init(
        _ name: String, at url: String, timeout: Duration, attempts: Int, retriesFailures: Bool = true,
        options: TransferOptions = TransferOptions()
    ) {
        (self.name, self.url, self.timeout, self.attempts) = (name, url, timeout, max(attempts, 1))
        policy = RetryPolicy(
            retryLimit: UInt(self.attempts - 1), exponentialBackoffScale: Self.backoff.first, maximumDelay: Self.backoff.limit,
            retryableHTTPMethods: [.get, .put, .post],
            retryableFailureKinds: retriesFailures ? RetryPolicy.defaultRetryableFailureKinds : [])
        var configuration = SessionConfiguration()
        configuration.options = options
        // It would read the secrets that are sent without TLS, which are meant for this computer and its neighbours.
        if !url.hasBytePrefix("https:") { configuration.proxy = .none }
        configuration.redirects.limit = 0
        configuration.maximumBodySize = Self.maximumSize
        self.configuration = configuration
    }

    /// Where the endpoint is, for messages.
    var place: String {
        guard let origin = HTTPOrigin(url: url) else { return name }
        return "\(name) at \(origin.scheme)://\(origin.host.bracketed):\(origin.port)"
    }

    /// Sends a request to a path at the URL, and returns a response with the status 200 or one from 400 to 499.
    ///
    /// - Throws: ``AWSCredentialsError/unreachable(_:reason:)``, ``AWSCredentialsError/invalidResponse(_:reason:)`` for a long answer,
    ///   ``AWSCredentialsError/refused(_:statusCode:code:)`` for other statuses, those of redirects among them; `CancellationError`.
    func send(
        _ method: HTTPMethod = .get, _ path: String = "", headers: HTTPHeaders = [:], form: [String: String]? = nil
    ) async throws -> Response {
        // Of this request, as the next one is hours away.
        let manager = SessionManager(configuration: configuration)
        let options = RequestOptions(connectTimeout: timeout, totalTimeout: timeout, interceptor: policy)
        let response = await manager.request(url + path, method: method, parameters: form, headers: headers, options: options)
            .validate(statusCode: [200] + Array(400..<429) + Array(430..<500)).serializingData().response
        if case .success(let body) = response.result, let head = response.responseHead {
            let offset = AWSSignatureV4.clockOffset(of: head.headers, receivedAt: Date()) ?? .zero
            return Response(status: head.statusCode, body: body, clockOffset: abs(offset.seconds) < 60 ? .zero : offset)
        }
        try Task.checkCancellation()
        if case CurlewError.transferFailed(let failure)? = response.error {
            if failure.kind == .tooLarge { throw AWSCredentialsError.invalidResponse(place, reason: failure.message) }
            throw AWSCredentialsError.unreachable(place, reason: "\(failure.message) (\(failure.kind) while \(failure.phase))")
        }
        guard let status = response.responseHead?.statusCode else {
            throw AWSCredentialsError.unreachable(place, reason: "the request can't be sent")
        }
        throw AWSCredentialsError.refused(place, statusCode: status, code: nil)
    }
}

// MARK: - Answers

/// The credentials in an answer of the container endpoint or the instance endpoint, or an error.
struct CredentialsDocument: Decodable {
    /// `Success`, or an error's code; `nil` if the service sends none.
    let code: String?
    private let keys: [String: String]

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func text(_ name: String) -> String? { (try? container.decode(String.self, forKey: Key(name))).flatMap { $0.isEmpty ? nil : $0 } }
        code = text("Code") ?? text("code")
        let names = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"]
        keys = Dictionary(uniqueKeysWithValues: names.compactMap { name in text(name).map { (name, $0) } })
    }

    /// The credentials of a document.
    ///
    /// - Parameter place: where it is from.
    /// - Throws: ``AWSCredentialsError``.
    static func credentials(in response: CredentialsEndpoint.Response, from place: String) throws(AWSCredentialsError) -> AWSCredentials {
        guard let document = try? JSONDecoder().decode(CredentialsDocument.self, from: response.body) else {
            guard response.status == 200 else { throw .refused(place, statusCode: response.status, code: nil) }
            throw .invalidResponse(place, reason: "it is no object of JSON")
        }
        guard response.status == 200, document.code.map({ $0 == "Success" }) ?? true else {
            throw .refused(place, statusCode: response.status, code: AWSCredentialsError.code(document.code))
        }
        return try AWSCredentials(document.keys, token: "Token", in: response, from: place)
    }
}

extension AWSCredentials {
    /// Temporary credentials of a service, which has to send all their parts. They expire by its clock, and so may seem to have expired, or
    /// not to have, by this computer's: their expiration is the time that this computer's clock has then.
    init(
        _ parts: [String: String], token: String, in response: CredentialsEndpoint.Response, from place: String
    ) throws(AWSCredentialsError) {
        func part(_ name: String) throws(AWSCredentialsError) -> String {
            guard let part = parts[name], !part.isEmpty else { throw .invalidResponse(place, reason: "it has no \(name)") }
            return part
        }
        guard let expiration = Date(iso8601: try part("Expiration")) else {
            throw .invalidResponse(place, reason: "its Expiration is no date")
        }
        self.init(
            accessKeyID: try part("AccessKeyId"), secretAccessKey: try part("SecretAccessKey"), sessionToken: try part(token),
            expiration: expiration.addingTimeInterval(-response.clockOffset.seconds))
        guard HTTPHeader(name: "X", value: "\(accessKeyID)\(sessionToken ?? "")").isValid else {
            throw .invalidResponse(place, reason: "its keys can't be sent in a header")
        }
        if let local = self.expiration, local <= Date() { throw .expired(expiration) }
    }
}

extension Date {
    /// A time in the form of ISO 8601 that services of AWS send, with or without fractions of seconds.
    init?(iso8601 text: String) {
        let style = Date.ISO8601FormatStyle()
        guard let date = (try? style.parse(text)) ?? (try? style.time(includingFractionalSeconds: true).parse(text)) else { return nil }
        self = date
    }
}
