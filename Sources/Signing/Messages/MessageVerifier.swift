// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Verifies HTTP message signatures of requests and responses (RFC 9421, section 3.2).
///
/// ```swift
/// let verifier = MessageVerifier(requiring: ["@method", "@target-uri"]) { id in keys[id ?? ""] }
/// let signature = try verifier.verify(.request(.post, url, headers: headers), body: body)
/// ```
///
/// A signature proves only what it covers: name in ``requiredComponents`` all that is acted upon.
public struct MessageVerifier: Sendable {
    /// The most signatures of a message that are considered.
    private static let limit = 16
    /// The most components that a signature may cover: each may be as long as the message.
    private static let componentLimit = 64

    /// What a signature has to cover. The order of a component's parameters does not count.
    public var requiredComponents: [MessageComponent]
    /// The label of the signature; `nil`, the default, accepts any.
    public var label: String?
    /// The application for which the signature has to be; `nil`, the default, accepts any.
    public var tag: String?
    /// The oldest signature that is accepted, which also has to name its time; 5 minutes by default, `nil` accepts any age.
    public var maximumAge: Duration? = .seconds(300)
    /// What the clocks of both sides may differ by; 30 seconds by default.
    public var clockSkew: Duration = .seconds(30)
    /// Whether a body that is not empty has to be covered by `content-digest`; `true` by default.
    public var requiresCoveredBody = true
    /// Asked last, for a signature that is right; `false` refuses it. For nonces that must be used once; accepts all by default.
    ///
    /// Called on the thread that verifies.
    public var accepts: @Sendable (MessageSignature) -> Bool = { _ in true }

    private let key: @Sendable (_ id: String?) -> VerificationKey?

    /// Creates a verifier.
    ///
    /// - Parameters:
    ///   - components: what a signature has to cover.
    ///   - key: returns the key with an identifier, which is `nil` for a signature that names none. Called on the thread that verifies. Where
    ///     keys have to be loaded, do it before, for the identifiers of ``SignableMessage/signatures()``.
    public init(requiring components: [MessageComponent], key: @escaping @Sendable (_ id: String?) -> VerificationKey?) {
        requiredComponents = components
        self.key = key
    }

    /// Verifies a message; returns the first of its signatures that is accepted.
    ///
    /// - Parameters:
    ///   - message: the message as it was received.
    ///   - body: the whole body as it was transferred, in its content coding; `nil` if the caller compares `Content-Digest` itself. Curlew
    ///     decodes bodies: that of a response with `Content-Encoding` can't be verified.
    ///   - date: the time.
    /// - Throws: ``MessageSignatureError``, of the first signature with the wanted label and tag if none is accepted.
    @discardableResult
    public func verify(_ message: SignableMessage, body: Data? = nil, at date: Date = Date()) throws(MessageSignatureError)
        -> MessageSignature
    {
        let all = try message.signatures()
        guard all.count <= Self.limit else { throw .malformedField("Signature-Input") }
        var failure: MessageSignatureError?
        for signature in all {
            if let label, !label.hasSameBytes(as: signature.label) { continue }
            if let tag, signature.input.tag.map({ !tag.hasSameBytes(as: $0) }) ?? true { continue }
            do throws(MessageSignatureError) {
                try check(signature, of: message, body, at: date)
                return signature
            } catch {
                failure = failure ?? error
            }
        }
        throw failure ?? .noSignature
    }

    private func check(_ signature: MessageSignature, of message: SignableMessage, _ body: Data?, at date: Date)
        throws(MessageSignatureError)
    {
        let input = signature.input
        guard input.components.count <= Self.componentLimit else { throw .malformedField("Signature-Input") }
        let covered = Set(input.components.map(\.key))
        for component in requiredComponents where !covered.contains(component.key) { throw .notCovered(component.description) }
        let coversBody = covered.contains(MessageComponent("content-digest").key)
        if let body, !body.isEmpty, requiresCoveredBody, !coversBody { throw .notCovered("\"content-digest\"") }
        try checkTime(of: input, at: date)
        guard let key = key(input.keyID) else { throw .unknownKey(id: input.keyID) }
        if let algorithm = input.algorithm, !algorithm.hasSameBytes(as: key.algorithm.rawValue) { throw .wrongAlgorithm(algorithm) }
        let base = try message.signatureBase(input)
        let isValid: Bool
        do throws(SigningKeyError) {
            isValid = try key.isValid(signature.signature, of: Data(base.utf8))
        } catch {
            throw .key(error)
        }
        guard isValid else { throw .wrongSignature }
        if let body, coversBody, message.headers.contentDigest?.matches(body) != true { throw .wrongDigest }
        guard accepts(signature) else { throw .refused }
    }

    private func checkTime(of input: SignatureInput, at date: Date) throws(MessageSignatureError) {
        if let created = input.created {
            let age = date.timeIntervalSince(created)
            if age < -clockSkew.seconds { throw .notYetValid(created: created) }
            if let maximumAge, age > maximumAge.seconds + clockSkew.seconds { throw .expired }
        } else if maximumAge != nil {
            throw .missingParameter("created")
        }
        if let expires = input.expires, date.timeIntervalSince(expires) > clockSkew.seconds { throw .expired }
    }
}
