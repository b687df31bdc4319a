// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP

/// Signs and verifies webhooks by HMAC with SHA-256 of the body, or of the time and the body, as many services do in forms of their own.
///
/// ```swift
/// let webhook = try HMACWebhook(.gitHub, secrets: secret)
/// try webhook.verify(headers, body: body)
/// ```
public struct HMACWebhook: Sendable {
    /// The form of a service's signatures.
    public struct Form: Sendable, Hashable {
        /// How a signature is written.
        public enum Encoding: Sendable, Hashable {
            /// Hexadecimal digits, written in lower case.
            case hex
            /// Base64.
            case base64
        }

        /// Where the time is, in seconds since 1970.
        public enum Timestamp: Sendable, Hashable {
            /// There is none: a webhook can be sent again by anyone who has seen it.
            case none
            /// In a field of its own.
            case field(String)
            /// In the signature's field, a list of parameters such as `t=1492774577,v1=5257…`, under a name.
            case parameter(String)
        }

        /// The field of the signature.
        public var field: String
        /// What is in front of a signature, such as `sha256=`.
        public var prefix: String
        /// How it is written; in hexadecimal digits by default.
        public var encoding: Encoding
        /// Where the time is; nowhere by default.
        public var timestamp: Timestamp
        /// What is signed in front of the time, such as `v0:`.
        public var beginning: String
        /// What is signed between the time and the body, such as `.`.
        public var separator: String

        /// Creates a form: by default that of the body alone.
        public init(
            field: String, prefix: String = "", encoding: Encoding = .hex, timestamp: Timestamp = .none, beginning: String = "",
            separator: String = "."
        ) {
            (self.field, self.prefix, self.encoding, self.timestamp) = (field, prefix, encoding, timestamp)
            (self.beginning, self.separator) = (beginning, separator)
        }

        /// GitHub's: `X-Hub-Signature-256: sha256=…`, of the body.
        public static let gitHub = Form(field: "X-Hub-Signature-256", prefix: "sha256=")
        /// Stripe's: `Stripe-Signature: t=…,v1=…`, of time, dot and body.
        public static let stripe = Form(field: "Stripe-Signature", prefix: "v1=", timestamp: .parameter("t"))
        /// Slack's: `X-Slack-Signature: v0=…`, of `v0:`, the time of `X-Slack-Request-Timestamp`, a colon and the body.
        public static let slack = Form(
            field: "X-Slack-Signature", prefix: "v0=", timestamp: .field("X-Slack-Request-Timestamp"), beginning: "v0:", separator: ":")
    }

    /// The most signatures of a webhook that are considered.
    private static let limit = 16

    /// The form of signatures.
    public let form: Form
    /// How far the time of a webhook may be from the present one; 5 minutes by default.
    public var tolerance: Duration = .seconds(300)
    private let secrets: [KeyMaterial.Secret]

    /// Creates a scheme.
    ///
    /// - Parameters:
    ///   - form: the service's form.
    ///   - secrets: at least one, as text, whose bytes in UTF-8 are the key. The first one signs, all of them verify; where a field has
    ///     several parameters, all of them sign.
    /// - Throws: ``WebhookError/invalidSecret(_:)`` without a secret, and for an empty one.
    public init(_ form: Form, secrets: String...) throws(WebhookError) { try self.init(form, secrets: secrets.map { Array($0.utf8) }) }

    /// The same with the bytes of secrets.
    public init(_ form: Form, secrets: [[UInt8]]) throws(WebhookError) {
        guard !secrets.isEmpty, secrets.allSatisfy({ !$0.isEmpty }) else { throw .invalidSecret("it is empty") }
        self.form = form
        self.secrets = secrets.map { KeyMaterial.Secret(bytes: $0) }
    }

    // MARK: Signing

    /// Returns the fields that sign a webhook.
    ///
    /// - Parameters:
    ///   - body: the body as it is sent.
    ///   - date: the time of the attempt.
    public func sign(_ body: Data, at date: Date = Date()) -> HTTPHeaders {
        let time = WebhookTime(date).text
        func signature(by secret: KeyMaterial.Secret) -> String { form.prefix + encoded(code(of: body, time, by: secret)) }
        switch form.timestamp {
        case .none: return [HTTPHeader(name: form.field, value: signature(by: secrets[0]))]
        case .field(let name):
            return [HTTPHeader(name: name, value: time), HTTPHeader(name: form.field, value: signature(by: secrets[0]))]
        case .parameter(let name):
            let parameters = ["\(name)=\(time)"] + secrets.map(signature)
            return [HTTPHeader(name: form.field, value: parameters.joined(separator: ","))]
        }
    }

    /// Returns a signer for the request that delivers a webhook, which signs each attempt at its own time.
    ///
    /// - Parameter body: the body that the request has: another one fails the attempt with ``WebhookError/otherBody``.
    public func signer(body: Data) -> WebhookSigner {
        let key = VerificationKey(.secret(secrets[0]), .hmacSHA256, id: nil)
        return WebhookSigner(identity: "webhook \(key.distinction) \(form.field)", body: body) { sign(body, at: $0) }
    }

    private func code(of body: Data, _ time: String, by secret: KeyMaterial.Secret) -> [UInt8] {
        HMAC.sha256(form.timestamp == .none ? "" : "\(form.beginning)\(time)\(form.separator)", body, key: secret)
    }

    private func encoded(_ code: [UInt8]) -> String {
        form.encoding == .hex ? code.hexDigits : Data(code).base64EncodedString()
    }

    // MARK: Verifying

    /// Verifies a webhook that was received; returns its time, `nil` in a form without one.
    ///
    /// Signatures are compared in constant time.
    ///
    /// - Parameters:
    ///   - headers: the fields of the request.
    ///   - body: its whole body, as it was received.
    ///   - date: the present time.
    /// - Throws: ``WebhookError``.
    @discardableResult
    public func verify(_ headers: HTTPHeaders, body: Data, at date: Date = Date()) throws(WebhookError) -> Date? {
        let value = try headers.required(form.field)
        var candidates = [value[...]]
        var time: WebhookTime?
        switch form.timestamp {
        case .none: break
        case .field(let name): time = try WebhookTime(try headers.required(name), of: name, within: tolerance, at: date)
        case .parameter(let name):
            candidates = value.splitScalars(separator: ",").map(\.trimmingBlanks)
            let times = candidates.filter { $0.hasBytePrefix("\(name)=") }.map { $0.dropFirstScalars(name.unicodeScalars.count + 1) }
            guard times.count == 1, let text = times.first else { throw .malformedField(form.field) }
            time = try WebhookTime(text, of: form.field, within: tolerance, at: date)
        }
        let codes = candidates.filter { $0.hasBytePrefix(form.prefix) }.prefix(Self.limit).compactMap {
            decoded($0.dropFirstScalars(form.prefix.unicodeScalars.count))
        }
        guard !codes.isEmpty else { throw .malformedField(form.field) }
        // All are compared, so that the time does not say which one fits.
        let own = secrets.map { code(of: body, time?.text ?? "", by: $0) }
        let matches = codes.flatMap { code in own.map { $0.isSameInConstantTime(as: code) } }
        guard matches.contains(true) else { throw .wrongSignature }
        return time?.date
    }

    private func decoded(_ text: Substring) -> [UInt8]? {
        guard form.encoding == .hex else { return Data(base64Encoded: String(text)).map { Array($0) } }
        let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue.map { UInt8($0) } }
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

// MARK: - Descriptions

extension HMACWebhook: CustomStringConvertible, CustomReflectable {
    /// The form's field; never a secret.
    public var description: String { "HMACWebhook(\(form.field))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["field": form.field]) }
}
