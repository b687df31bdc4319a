// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Signs requests to services of AWS, and to servers with the interface of S3, by AWS Signature Version 4, as fields of a header or as a
/// presigned URL.
///
/// The rules are those of the
/// [documentation of AWS](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html), and where it is
/// silent, those of botocore. A value without I/O: any thread may sign.
///
/// The query is signed in the form in which servers see it: decoded, with `+` as a space, and encoded again. Items without a name, a value
/// and `=` are not part of it.
public struct AWSSignatureV4: Sendable, Hashable {
    /// How the path of a URL is signed.
    public enum PathRule: Sendable, Hashable {
        /// As S3 does: with all its segments, in which every byte but the unreserved characters (RFC 3986, section 2.3) is encoded once.
        case once
        /// As all other services do: without empty segments, `.` and `..`, and with its escapes encoded once more.
        case normalized
    }

    /// The service's name in the scope of signatures, such as `s3` or `execute-api`.
    public var service: String
    /// The region in the scope of signatures, such as `eu-central-1`.
    public var region: String
    /// How the path is signed: ``PathRule/once`` by default for `s3`, `s3express`, `s3-object-lambda` and `s3-outposts`, and
    /// ``PathRule/normalized`` for other services.
    public var pathRule: PathRule
    /// Whether a digest is sent in `X-Amz-Content-Sha256`, and the body of a presigned URL is unsigned: by default for the services of
    /// ``PathRule/once``. Payloads other than digests are always sent in that field.
    public var sendsContentHash: Bool
    /// The names of further header fields that are not signed, compared case-insensitively; none by default.
    ///
    /// Never signed are the fields that a proxy may change, as in botocore: `Authorization`, `Baggage`, `Connection`, `Expect`, `Keep-Alive`,
    /// `Proxy-Authenticate`, `Proxy-Authorization`, `TE`, `Traceparent`, `Tracestate`, `Trailer`, `Transfer-Encoding`, `Upgrade`,
    /// `User-Agent` and `X-Amzn-Trace-Id`. All others are.
    public var unsignedHeaders: Set<String> = []
    /// What is added to the time of this computer to get that of the server; zero by default. `clockOffset(of:receivedAt:)` computes it.
    public var clockOffset: Duration = .zero

    /// Creates a signer for a service in a region.
    public init(service: String, region: String) {
        self.service = service
        self.region = region
        let isS3 = ["s3", "s3express", "s3-object-lambda", "s3-outposts"].contains(service)
        pathRule = isS3 ? .once : .normalized
        sendsContentHash = isS3
    }

    /// Returns the header fields that have to be set, in place of those of the same name, to send a request signed: `X-Amz-Date`,
    /// `Authorization`, and where they apply `X-Amz-Content-Sha256` and `X-Amz-Security-Token`.
    ///
    /// - Parameters:
    ///   - method: the method as it is sent.
    ///   - url: the absolute URL as it is sent; user name, password and fragment are ignored.
    ///   - headers: the fields as they are sent, all of which are signed but for ``unsignedHeaders``. Without `Host`, the URL's host counts
    ///     as it is written there, without the scheme's default port.
    ///   - payload: the digest of the body, or what takes its place.
    ///   - credentials: whose request it is.
    ///   - date: the time by the clock of this computer. The signature is accepted for 15 minutes by S3, and 5 by other services.
    /// - Throws: ``AWSSigningError/invalidURL(_:)``.
    public func sign(
        method: String, url: String, headers: HTTPHeaders, payload: Payload, credentials: AWSCredentials, at date: Date
    ) throws(AWSSigningError) -> HTTPHeaders {
        let target = try SigningTarget(url)
        let key = AWSScopedKey(self, credentials, timestamp: timestamp(at: date))
        var fields: HTTPHeaders = ["X-Amz-Date": key.timestamp]
        if sendsContentHash || !payload.isDigest { fields.append(name: "X-Amz-Content-Sha256", value: payload.contentHash) }
        if let token = credentials.sessionToken { fields.append(name: "X-Amz-Security-Token", value: token) }
        var signed = headers
        signed.merge(fields)
        let canonical = canonicalFields(of: signed, host: target.host)
        let signature = signature(by: key, method, target, canonical, payload)
        let credential = "\(credentials.accessKeyID)/\(key.scope)"
        fields.append(
            .authorization("\(Self.algorithm) Credential=\(credential), SignedHeaders=\(canonical.names), Signature=\(signature)"))
        return fields
    }

    /// Returns a URL by which a request can be sent without credentials, for a time.
    ///
    /// Its scheme and host are in lower case, the items of its query re-encoded, those of an earlier signature removed, and so are user
    /// name, password and fragment. Session tokens are part of it, and it is accepted no longer than the credentials are valid.
    ///
    /// - Parameters:
    ///   - method: the method with which it can be used; `GET` by default.
    ///   - url: the absolute URL.
    ///   - headers: fields with which it has to be used; none by default, but for `Host`, which is always signed.
    ///   - payload: the digest of the body with which it has to be used. By default that of the field `X-Amz-Content-Sha256` in `headers`,
    ///     otherwise for S3 that of any body, and for other services that of none.
    ///   - expiration: the time for which it can be used, in whole seconds from 1 to 604,800 (7 days); an hour by default.
    ///   - credentials: whose request it is.
    ///   - date: the beginning of that time by the clock of this computer.
    /// - Throws: ``AWSSigningError/invalidURL(_:)`` or ``AWSSigningError/invalidExpiration(_:)``.
    public func presign(
        method: String = "GET", url: String, headers: HTTPHeaders = [:], payload: Payload? = nil,
        expiresIn expiration: Duration = .seconds(3600), credentials: AWSCredentials, at date: Date
    ) throws(AWSSigningError) -> String {
        let seconds = expiration.components.seconds
        guard (1...604_800).contains(seconds) else { throw .invalidExpiration(expiration) }
        var target = try SigningTarget(url)
        target.host = target.host.lowercased()
        let key = AWSScopedKey(self, credentials, timestamp: timestamp(at: date))
        let canonical = canonicalFields(of: headers, host: target.host)
        target.setItem("X-Amz-Algorithm", Self.algorithm)
        target.setItem("X-Amz-Credential", "\(credentials.accessKeyID)/\(key.scope)")
        target.setItem("X-Amz-Date", key.timestamp)
        target.setItem("X-Amz-Expires", "\(seconds)")
        target.setItem("X-Amz-SignedHeaders", canonical.names)
        target.setItem("X-Amz-Security-Token", credentials.sessionToken)
        target.setItem("X-Amz-Signature", nil)
        let payload = payload ?? headers["X-Amz-Content-Sha256"].map { Payload($0) } ?? (sendsContentHash ? .unsigned : .empty)
        target.setItem("X-Amz-Signature", signature(by: key, method, target, canonical, payload))
        return target.url
    }

    /// Returns by how much the clock of a server is ahead of this computer's, from the field `Date` of its response, which has whole
    /// seconds; `nil` without a valid one.
    ///
    /// For `clockOffset`, after a refusal such as `RequestTimeTooSkewed`.
    ///
    /// - Parameters:
    ///   - response: the header fields of the response.
    ///   - now: the time by the clock of this computer at which the response arrived.
    public static func clockOffset(of response: HTTPHeaders, receivedAt now: Date) -> Duration? {
        guard let text = response["Date"], let date = HTTPDate.date(from: text, now: now) else { return nil }
        return .seconds(date.timeIntervalSince(now))
    }

    // MARK: Parts

    static let algorithm = "AWS4-HMAC-SHA256"

    private static let neverSigned: Set<String> = [
        "authorization", "baggage", "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "traceparent",
        "tracestate", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-amzn-trace-id",
    ]

    private func canonicalFields(of headers: HTTPHeaders, host: String) -> CanonicalFields {
        var headers = headers
        if headers["Host"] == nil { headers.append(name: "Host", value: host) }
        return CanonicalFields(headers, without: Self.neverSigned.union(unsignedHeaders.map { $0.lowercased() }))
    }

    private func signature(
        by key: AWSScopedKey, _ method: String, _ target: SigningTarget, _ fields: CanonicalFields, _ payload: Payload
    ) -> String {
        let request = [
            method, target.path(by: pathRule), target.canonicalQuery, fields.lines, fields.names, payload.contentHash,
        ].joined(separator: "\n")
        return key.signature(Self.algorithm, SHA256.digest(of: request.utf8).hexDigits)
    }

    /// The time of the server, such as `20130524T000000Z`.
    private func timestamp(at date: Date) -> String {
        date.addingTimeInterval(clockOffset.seconds).formatted(Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted))
    }
}
