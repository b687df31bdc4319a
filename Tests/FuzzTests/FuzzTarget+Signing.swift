// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import Foundation

extension FuzzTarget {
    /// What verifies signatures parses before it knows the sender.
    static let signatures: [FuzzTarget] = [FuzzTarget(name: "message-signature", check: messageSignature)]

    /// The input's zero bytes separate `Signature-Input`, `Signature`, another field and a URL's query.
    private static func messageSignature(_ input: [UInt8]) throws {
        let parts = input.split(separator: 0, maxSplits: 3, omittingEmptySubsequences: false).map { text(Array($0)) }
        guard parts.count == 4 else { return }
        let headers: HTTPHeaders = ["Signature-Input": parts[0], "Signature": parts[1], "A": parts[2]]
        let request = SignableMessage.request(.get, "https://origin.test/?\(parts[3])", headers: headers)
        guard let signatures = try? request.signatures() else { return }
        for message in [request, .response(200, headers: headers, trailers: headers, to: request)] {
            for signature in signatures {
                guard let base = try? message.signatureBase(signature.input) else { continue }
                try require(base.utf8.allSatisfy { $0 < 0x80 && $0 != 13 }, "not ASCII: \(base.debugDescription)")
                let lines = base.utf8.split(separator: 10, omittingEmptySubsequences: false)
                try require(lines.count == signature.input.components.count + 1, "\(lines.count) lines in \(base.debugDescription)")
                try require(lines.allSatisfy { $0.first == UInt8(ascii: "\"") }, "a line without a name: \(base.debugDescription)")
            }
        }
        let key = try SigningKey(secret: [1])
        guard let fields = try? request.signed(as: "fuzz", with: key, covering: SignatureInput([.query])) else { return }
        let verifier = MessageVerifier(requiring: [.query]) { _ in key.verificationKey }
        var signed = SignableMessage.request(.get, "https://origin.test/?\(parts[3])", headers: fields)
        guard signatures.count < 16, !signatures.contains(where: { $0.label == "fuzz" }) else { return }
        try require((try? verified(signed, by: verifier)) != nil, "not verified: \(fields)")
        signed.headers["Signature"] = parts[1]
        try require((try? verified(signed, by: verifier)) == nil, "verified: \(parts[1].debugDescription)")
    }

    private static func verified(_ message: SignableMessage, by verifier: MessageVerifier) throws -> MessageSignature {
        var verifier = verifier
        (verifier.label, verifier.maximumAge) = ("fuzz", nil)
        return try verifier.verify(message)
    }
}
