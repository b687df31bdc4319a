// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a message can't be signed, or its signature is not accepted.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum MessageSignatureError: Error, Sendable, Hashable {
    /// The URL of the request is not absolute, or has no host or an invalid port.
    case invalidURL(String)
    /// The message has no such component, named by its identifier: a field that is not there, or a part of a request that was not given.
    case missingComponent(String)
    /// A component that is unknown, repeated, contradictory or not one of this kind of message, named by its identifier.
    case unsupportedComponent(String)
    /// The value of a component can't be covered: it has a line break or characters other than ASCII, it is no structured field, or a
    /// parameter of the query is repeated.
    case invalidValue(String)
    /// A label, a parameter or a name has characters that structured fields can't have.
    case invalidParameter
    /// The request has a body, and its digest is unknown, because it is neither in memory nor a file.
    case bodyNotDigested
    /// `Signature-Input` or `Signature`, which is named, does not parse, or the two don't go together.
    case malformedField(String)
    /// There is no signature with the wanted label and tag.
    case noSignature
    /// The signature does not cover a required component, named by its identifier.
    case notCovered(String)
    /// The signature lacks a required parameter.
    case missingParameter(String)
    /// The signature was made in the future, by more than the tolerance.
    case notYetValid(created: Date)
    /// The signature is too old, or past its own end.
    case expired
    /// No key has this identifier.
    case unknownKey(id: String?)
    /// The signature names another algorithm than that of the key.
    case wrongAlgorithm(String)
    /// The signature is not that of the message by the key.
    case wrongSignature
    /// `Content-Digest` is not that of the body, or has no known algorithm.
    case wrongDigest
    /// The verifier's check has refused a signature that is otherwise right, such as one that was seen before.
    case refused
    /// The key can't sign or verify.
    case key(SigningKeyError)
}

extension MessageSignatureError: CustomStringConvertible, LocalizedError, RedactedCases {
    /// The name of a case with a payload.
    package var caseName: String? {
        switch self {
        case .invalidURL: "invalidURL"
        case .missingComponent: "missingComponent"
        case .unsupportedComponent: "unsupportedComponent"
        case .invalidValue: "invalidValue"
        case .malformedField: "malformedField"
        case .notCovered: "notCovered"
        case .missingParameter: "missingParameter"
        case .notYetValid: "notYetValid"
        case .unknownKey: "unknownKey"
        case .wrongAlgorithm: "wrongAlgorithm"
        case .key: "key"
        case .invalidParameter, .bodyNotDigested, .noSignature, .expired, .wrongSignature, .wrongDigest, .refused: nil
        }
    }

    /// What is wrong, as a sentence, without secrets.
    public var description: String {
        switch self {
        case .invalidURL(let url): "The message can't be signed, as its URL is not absolute or has no valid host: \(url.redactedURL)"
        case .missingComponent(let name): "The message has no \(Redaction.escaped(name)), which the signature covers."
        case .unsupportedComponent(let name): "A signature can't cover \(Redaction.escaped(name)) of this message."
        case .invalidValue(let name): "The value of \(Redaction.escaped(name)) can't be covered by a signature."
        case .invalidParameter: "A label or a parameter of the signature has characters other than those of structured fields."
        case .bodyNotDigested: "The body can't be covered, as its digest is known only for bodies in memory and files."
        case .malformedField(let name): "\(name) does not have the form of RFC 9421."
        case .noSignature: "The message has no such signature."
        case .notCovered(let name): "The signature does not cover \(Redaction.escaped(name))."
        case .missingParameter(let name): "The signature has no parameter \(name)."
        case .notYetValid(let created): "The signature was made in the future: \(created.formatted(.iso8601))."
        case .expired: "The signature is too old."
        case .unknownKey(let id): "There is no key \(id.map(Redaction.escaped) ?? "for a signature that names none")."
        case .wrongAlgorithm(let name): "The signature names the algorithm \(Redaction.escaped(name)), which is not the key's."
        case .wrongSignature: "The signature is not that of the message."
        case .wrongDigest: "Content-Digest is not that of the body."
        case .refused: "The signature was refused."
        case .key(let error): error.description
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}
