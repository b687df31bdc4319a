// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP

/// Signs and verifies webhooks of the scheme [Standard Webhooks](https://www.standardwebhooks.com): with the fields `webhook-id`,
/// `webhook-timestamp` and `webhook-signature`.
///
/// ```swift
/// let webhook = try StandardWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
/// let message = try webhook.verify(headers, body: body)
/// ```
///
/// To change keys without a failure, name both for a time: each signs, and one that fits is enough.
public struct StandardWebhook: Sendable {
    /// The most signatures of a webhook that are considered.
    private static let limit = 16

    /// A webhook that was verified.
    public struct Message: Sendable, Hashable {
        /// The identifier, by which the receiver recognizes a webhook that is delivered again.
        public let id: String
        /// The time at which this delivery was attempted.
        public let timestamp: Date
    }

    private struct Key: Sendable {
        let signing: SigningKey?
        let verifying: VerificationKey
        var version: String { verifying.algorithm == .hmacSHA256 ? "v1" : "v1a" }
    }

    private let keys: [Key]
    /// The beginning of the fields' names; `webhook-` by default, `svix-` for some senders.
    public var fieldPrefix = "webhook-"
    /// How far the time of a webhook may be from the present one; 5 minutes by default.
    public var tolerance: Duration = .seconds(300)

    /// Creates a scheme with its keys.
    ///
    /// - Parameter secrets: at least one: `whsec_` and the secret in base64, for HMAC with SHA-256 (`v1`), the prefix optional; or `whsk_` and
    ///   a private, `whpk_` and a public key of Ed25519 (`v1a`).
    /// - Throws: ``WebhookError/invalidSecret(_:)``, ``WebhookError/key(_:)``.
    public init(_ secrets: String...) throws(WebhookError) { try self.init(secrets) }

    /// The same with a list.
    public init(_ secrets: [String]) throws(WebhookError) {
        guard !secrets.isEmpty else { throw .invalidSecret("there is none") }
        var keys: [Key] = []
        for secret in secrets { keys.append(try Self.key(secret)) }
        self.keys = keys
    }

    private static func key(_ text: String) throws(WebhookError) -> Key {
        let prefix = ["whsec_", "whsk_", "whpk_"].first { text.hasBytePrefix($0) } ?? ""
        guard let data = Data(base64Encoded: String(text.dropFirstScalars(prefix.utf8.count))) else {
            throw .invalidSecret("it is not base64, with whsec_, whsk_ or whpk_ in front")
        }
        return try withKeys { () throws(SigningKeyError) in
            switch prefix {
            case "whsk_":
                // Some programs write the public key after the private one.
                let seed = Array(data.count == 64 ? data.prefix(32) : data)
                let key = try SigningKey(try signing { () throws(CryptoError) in try AsymmetricKey(ed25519Seed: seed) })
                return Key(signing: key, verifying: key.verificationKey)
            case "whpk_":
                let key = try signing { () throws(CryptoError) in try AsymmetricKey(ed25519PublicKey: Array(data)) }
                return Key(signing: nil, verifying: VerificationKey(.asymmetric(key), .ed25519, id: nil))
            default:
                let key = try SigningKey(secret: data)
                return Key(signing: key, verifying: key.verificationKey)
            }
        }
    }

    // MARK: Signing

    /// Returns the three fields that sign a webhook.
    ///
    /// - Parameters:
    ///   - id: the identifier, the same for each attempt to deliver it; without dots.
    ///   - body: the body as it is sent.
    ///   - date: the time of the attempt.
    /// - Throws: ``WebhookError``.
    public func sign(id: String, body: Data, at date: Date = Date()) throws(WebhookError) -> HTTPHeaders {
        guard Self.isValid(id) else { throw .invalidID }
        let time = WebhookTime(date)
        let content = Self.content(id, time, body)
        var signatures: [String] = []
        for key in keys {
            guard let signing = key.signing else { continue }
            let signature = try withKeys { () throws(SigningKeyError) in try signing.signature(of: content) }
            signatures.append("\(key.version),\(signature.base64EncodedString())")
        }
        guard !signatures.isEmpty else { throw .noSigningKey }
        return [
            HTTPHeader(name: fieldPrefix + "id", value: id), HTTPHeader(name: fieldPrefix + "timestamp", value: time.text),
            HTTPHeader(name: fieldPrefix + "signature", value: signatures.joined(separator: " ")),
        ]
    }

    /// Returns a signer for the request that delivers a webhook, which signs each attempt at its own time.
    ///
    /// - Parameters:
    ///   - id: the identifier, the same for each attempt.
    ///   - body: the body that the request has: another one fails the attempt with ``WebhookError/otherBody``.
    public func signer(id: String, body: Data) -> WebhookSigner {
        WebhookSigner(identity: "webhook \(keys[0].verifying.distinction) \(id)", body: body) { try sign(id: id, body: body, at: $0) }
    }

    private static func content(_ id: String, _ time: WebhookTime, _ body: Data) -> Data { Data("\(id).\(time.text).".utf8) + body }

    /// A dot would let one text be that of another identifier and body.
    private static func isValid(_ id: String) -> Bool {
        !id.isEmpty && id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ".") }
    }

    // MARK: Verifying

    /// Verifies a webhook that was received.
    ///
    /// - Parameters:
    ///   - headers: the fields of the request.
    ///   - body: its whole body, as it was received.
    ///   - date: the present time.
    /// - Throws: ``WebhookError``.
    @discardableResult
    public func verify(_ headers: HTTPHeaders, body: Data, at date: Date = Date()) throws(WebhookError) -> Message {
        let id = try headers.required(fieldPrefix + "id")
        guard Self.isValid(id) else { throw .invalidID }
        let field = fieldPrefix + "timestamp"
        let time = try WebhookTime(try headers.required(field), of: field, within: tolerance, at: date)
        let signatures = try headers.required(fieldPrefix + "signature").splitScalars { $0 == " " }
        let content = Self.content(id, time, body)
        for text in signatures.prefix(Self.limit) {
            let parts = text.splitScalars(separator: ",", maxSplits: 1)
            guard parts.count == 2, let signature = Data(base64Encoded: String(parts[1])) else { continue }
            for key in keys where key.version.hasSameBytes(as: parts[0]) {
                let isValid = try withKeys { () throws(SigningKeyError) in try key.verifying.isValid(signature, of: content) }
                if isValid { return Message(id: id, timestamp: time.date) }
            }
        }
        throw .wrongSignature
    }
}

/// Calls what throws errors of keys.
private func withKeys<Value>(_ body: () throws(SigningKeyError) -> Value) throws(WebhookError) -> Value {
    do throws(SigningKeyError) {
        return try body()
    } catch {
        throw .key(error)
    }
}

extension HTTPHeaders {
    /// The value of a field that has to be there once.
    func required(_ name: String) throws(WebhookError) -> String {
        let values = values(for: name)
        guard let value = values.first else { throw .missingField(name) }
        guard values.count == 1 else { throw .malformedField(name) }
        return String(value.trimmingBlanks)
    }
}

// MARK: - Descriptions

extension StandardWebhook: CustomStringConvertible, CustomReflectable {
    /// The number of keys; never a key.
    public var description: String { "StandardWebhook(\(keys.count) keys)" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["keys": keys.count]) }
}
