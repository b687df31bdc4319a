// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What signatures can cover of a request or a response (RFC 9421, section 2): everything but the body, which `Content-Digest` stands for.
///
/// A value without I/O: any thread may sign and verify.
public struct SignableMessage: Sendable {
    enum Kind: Sendable {
        /// `host` counts in place of the URL's.
        case request(method: String, url: String, host: String?, target: String?)
        indirect case response(status: Int, request: SignableMessage?)
    }

    let kind: Kind
    /// The fields of the head.
    public var headers: HTTPHeaders
    /// The fields after the body.
    public var trailers: HTTPHeaders

    private init(_ kind: Kind, _ headers: HTTPHeaders, _ trailers: HTTPHeaders) {
        (self.kind, self.headers, self.trailers) = (kind, headers, trailers)
    }

    /// A request.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - url: the absolute URL; user name, password and fragment are ignored. Its host counts, not `Host`: a server passes the one by which
    ///     it is reached, so that a request to another server that is sent to it again is not accepted.
    ///   - headers: the fields as they are sent, or as they were received.
    ///   - trailers: the fields after the body.
    ///   - target: the target in the first line, if it is other than path and query.
    public static func request(
        _ method: HTTPMethod, _ url: String, headers: HTTPHeaders = [:], trailers: HTTPHeaders = [:], target: String? = nil
    ) -> SignableMessage {
        SignableMessage(.request(method: method.rawValue, url: url, host: nil, target: target), headers, trailers)
    }

    /// A response.
    ///
    /// - Parameters:
    ///   - status: the status.
    ///   - headers: the fields as they are sent, or as they were received.
    ///   - trailers: the fields after the body.
    ///   - request: the request to which it is the answer, if the signature covers components of it (`req`).
    public static func response(
        _ status: Int, headers: HTTPHeaders = [:], trailers: HTTPHeaders = [:], to request: SignableMessage? = nil
    ) -> SignableMessage {
        SignableMessage(.response(status: status, request: request), headers, trailers)
    }

    /// Creates the message of a request that is about to be sent, to the host of its `Host`.
    public init(_ exchange: SignableExchange) {
        let host = exchange.headers["Host"]
        self.init(.request(method: exchange.method.rawValue, url: exchange.url, host: host, target: nil), exchange.headers, [:])
    }

    // MARK: Signing

    /// Returns the text that is signed (RFC 9421, section 2.5).
    ///
    /// - Throws: ``MessageSignatureError``.
    public func signatureBase(_ input: SignatureInput) throws(MessageSignatureError) -> String {
        var lines: [String] = []
        var covered: Set<MessageComponent.Key> = []
        for component in input.components {
            guard covered.insert(component.key).inserted else { throw .unsupportedComponent(component.description) }
            lines.append("\(try Self.text { try StructuredFields.text(of: component.item) }): \(try value(of: component))")
        }
        lines.append("\"@signature-params\": \(try Self.text { try StructuredFields.text(of: [.innerList(input.list)]) })")
        return lines.joined(separator: "\n")
    }

    /// Signs the message; returns the fields `Signature-Input` and `Signature`, to be set in place of those of the message, whose signatures
    /// they contain.
    ///
    /// - Parameters:
    ///   - label: the name of the signature: lower-case letters, digits, `_`, `-`, `.` and `*`. It replaces one of the same label.
    ///   - key: the key.
    ///   - input: what is covered, and the parameters; ``MessageSigner`` makes it for requests of a session.
    /// - Throws: ``MessageSignatureError``.
    public func signed(as label: String = "sig1", with key: SigningKey, covering input: SignatureInput) throws(MessageSignatureError)
        -> HTTPHeaders
    {
        let base = try signatureBase(input)
        let signature: Data
        do throws(SigningKeyError) {
            signature = try key.signature(of: Data(base.utf8))
        } catch {
            throw .key(error)
        }
        var (inputs, signatures) = (try dictionary("Signature-Input"), try dictionary("Signature"))
        inputs[label] = .innerList(input.list)
        signatures[label] = .item(.init(.bytes(signature)))
        return [
            "Signature-Input": try Self.text { try StructuredFields.text(of: inputs) },
            "Signature": try Self.text { try StructuredFields.text(of: signatures) },
        ]
    }

    private static func text(_ body: () throws -> String) throws(MessageSignatureError) -> String {
        do {
            return try body()
        } catch {
            throw .invalidParameter
        }
    }

    // MARK: Signatures

    /// Returns the signatures of the message, which are not verified.
    ///
    /// - Throws: ``MessageSignatureError/malformedField(_:)`` if a field does not parse, or if labels are not in both.
    public func signatures() throws(MessageSignatureError) -> [MessageSignature] {
        let (inputs, signatures) = (try dictionary("Signature-Input"), try dictionary("Signature"))
        guard Set(inputs.map(\.key)) == Set(signatures.map(\.key)) else { throw .malformedField("Signature") }
        var result: [MessageSignature] = []
        for member in inputs {
            guard case .innerList(let list) = member.value, let input = SignatureInput(list) else {
                throw .malformedField("Signature-Input")
            }
            guard case .item(let item)? = signatures[member.key], case .bytes(let bytes) = item.value else {
                throw .malformedField("Signature")
            }
            result.append(MessageSignature(label: member.key, input: input, signature: bytes))
        }
        return result
    }

    private func dictionary(_ name: String) throws(MessageSignatureError) -> StructuredFields.Dictionary {
        guard let text = headers.value(for: name) else { return [:] }
        guard let members = try? StructuredFields.dictionary(from: text) else { throw .malformedField(name) }
        return members
    }
}

// MARK: - Descriptions

extension SignableMessage: CustomStringConvertible, CustomReflectable {
    /// The method and the redacted URL of a request (``/CurlewHTTP/Redaction``), or the status of a response.
    public var description: String {
        switch kind {
        case .request(let method, let url, _, _): "\(Redaction.escaped(method)) \(url.redactedURL)"
        case .response(let status, _): "Response with status \(status)"
        }
    }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
