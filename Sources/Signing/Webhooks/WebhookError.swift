// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a webhook can't be signed, or is not accepted. Without secrets.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum WebhookError: Error, Sendable, Hashable {
    /// The text of a secret is not of the form that the scheme prescribes; the reason is what is wrong.
    case invalidSecret(String)
    /// An identifier that is empty, or has a dot or characters that a field can't have.
    case invalidID
    /// The field, which is named, is not there.
    case missingField(String)
    /// The field, which is named, does not parse.
    case malformedField(String)
    /// The time of the webhook is further from the present one than the tolerance: in the past, or in the future if its age is negative.
    case outsideTolerance(age: Duration)
    /// No signature is that of the webhook by one of the keys.
    case wrongSignature
    /// The keys are public ones, which only verify.
    case noSigningKey
    /// The request has another body than that which was to be signed.
    case otherBody
    /// A key can't sign or verify.
    case key(SigningKeyError)
}

extension WebhookError: CustomStringConvertible, LocalizedError {
    /// What is wrong, as a sentence, without secrets.
    public var description: String {
        switch self {
        case .invalidSecret(let reason): "The secret of the webhook can't be read: \(reason)."
        case .invalidID: "The identifier of a webhook is a text without dots and control characters."
        case .missingField(let name): "The webhook has no \(Redaction.escaped(name))."
        case .malformedField(let name): "\(Redaction.escaped(name)) of the webhook does not have the form of its scheme."
        case .outsideTolerance(let age): "The webhook is \(age.components.seconds) s old."
        case .wrongSignature: "No signature is that of the webhook."
        case .noSigningKey: "The webhook can't be signed, as its keys only verify."
        case .otherBody: "The request has another body than that which was to be signed."
        case .key(let error): error.description
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}

/// The time of a webhook, in seconds since 1970.
struct WebhookTime {
    /// As it is signed.
    let text: String
    let date: Date

    init(_ date: Date) {
        let seconds = Int64(date.timeIntervalSince1970)
        (text, self.date) = (String(seconds), Date(timeIntervalSince1970: TimeInterval(seconds)))
    }

    /// Reads a time, and compares it with the present one.
    init(_ text: some StringProtocol, of field: String, within tolerance: Duration, at now: Date) throws(WebhookError) {
        guard text.isAllDigits, text.utf8.count <= 15, let seconds = TimeInterval(String(text)) else { throw .malformedField(field) }
        (self.text, date) = (String(text), Date(timeIntervalSince1970: seconds))
        let age = now.timeIntervalSince(date)
        // Far beyond any time of a webhook; a `Duration` of more could trap.
        guard abs(age) <= tolerance.seconds else { throw .outsideTolerance(age: .seconds(min(max(age, -1e16), 1e16))) }
    }
}
