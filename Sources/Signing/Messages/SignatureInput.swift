// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What a signature covers, and its parameters: a member of the field `Signature-Input` (RFC 9421, sections 2.3 and 4.1).
public struct SignatureInput: Sendable, Hashable {
    /// The components, in the order in which they are signed.
    public let components: [MessageComponent]
    /// All parameters, in order, also those that have no property here.
    public let parameters: StructuredFields.Parameters

    /// Creates an input.
    ///
    /// - Parameters:
    ///   - components: what is covered, each component once.
    ///   - created: the time of the signature, in whole seconds.
    ///   - expires: the time from which the signature is not accepted any more, in whole seconds.
    ///   - keyID: the identifier of the key, in printable ASCII.
    ///   - algorithm: the algorithm; not needed where the key determines it.
    ///   - nonce: a text that is used once, in printable ASCII.
    ///   - tag: the application for which the signature is, in printable ASCII.
    public init(
        _ components: [MessageComponent], created: Date? = nil, expires: Date? = nil, keyID: String? = nil,
        algorithm: SignatureAlgorithm? = nil, nonce: String? = nil, tag: String? = nil
    ) {
        self.components = components
        var parameters: StructuredFields.Parameters = [:]
        parameters["created"] = created.flatMap(Self.seconds)
        parameters["expires"] = expires.flatMap(Self.seconds)
        parameters["keyid"] = keyID.map { .string($0) }
        parameters["alg"] = algorithm.map { .string($0.rawValue) }
        parameters["nonce"] = nonce.map { .string($0) }
        parameters["tag"] = tag.map { .string($0) }
        self.parameters = parameters
    }

    /// `nil` for components that are not strings, and for known parameters of another type.
    init?(_ list: StructuredFields.InnerList) {
        var components: [MessageComponent] = []
        for item in list.items {
            guard case .string(let name) = item.value else { return nil }
            components.append(MessageComponent(name, item.parameters))
        }
        self.components = components
        parameters = list.parameters
        for parameter in parameters {
            switch (parameter.key, parameter.value) {
            case ("created", .integer), ("expires", .integer), ("keyid", .string), ("alg", .string), ("nonce", .string), ("tag", .string):
                continue
            case ("created", _), ("expires", _), ("keyid", _), ("alg", _), ("nonce", _), ("tag", _): return nil
            default: continue
            }
        }
    }

    private static func seconds(_ date: Date) -> StructuredFields.BareItem? {
        Int(exactly: date.timeIntervalSince1970.rounded(.down)).map { .integer($0) }
    }

    /// The time of the signature; `nil` if it names none.
    public var created: Date? { date("created") }
    /// The time from which the signature is not accepted any more; `nil` if it names none.
    public var expires: Date? { date("expires") }
    /// The identifier of the key; `nil` if it names none.
    public var keyID: String? { text("keyid") }
    /// The name of the algorithm; `nil` if it names none.
    public var algorithm: String? { text("alg") }
    /// The text that is used once; `nil` if it names none.
    public var nonce: String? { text("nonce") }
    /// The application for which the signature is; `nil` if it names none.
    public var tag: String? { text("tag") }

    private func date(_ name: String) -> Date? {
        guard case .integer(let seconds)? = parameters[name] else { return nil }
        return Date(timeIntervalSince1970: TimeInterval(seconds))
    }

    private func text(_ name: String) -> String? {
        guard case .string(let text)? = parameters[name] else { return nil }
        return text
    }

    var list: StructuredFields.InnerList { .init(components.map(\.item), parameters: parameters) }
}

/// A signature of a message: members of the fields `Signature-Input` and `Signature`.
public struct MessageSignature: Sendable, Hashable {
    /// The name of the signature among those of the message.
    public let label: String
    /// What it covers, and its parameters.
    public let input: SignatureInput
    /// The signature itself.
    public let signature: Data
}
