// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The first block of a PEM file that has a key (RFC 7468); other blocks, such as certificates and the parameters of a curve, are skipped.
struct PEMBlock {
    /// The block with its first and last lines.
    let text: String
    let isPrivate: Bool
    let isEncrypted: Bool

    private static let privateLabels = ["PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]
    private static let publicLabels = ["PUBLIC KEY", "RSA PUBLIC KEY"]

    init(in pem: String) throws(CryptoError) {
        var rest = pem[...]
        var others: [String] = []
        while let begin = rest.firstScalarRange(of: "-----BEGIN ") {
            rest = rest[begin.upperBound...]
            guard let labelEnd = rest.firstScalarRange(of: "-----") else { break }
            let label = String(rest[..<labelEnd.lowerBound])
            guard let end = rest.firstScalarRange(of: "-----END \(label)-----") else {
                throw .invalidKey("the PEM block has no last line")
            }
            let block = pem[begin.lowerBound..<end.upperBound]
            rest = rest[end.upperBound...]
            guard Self.privateLabels.contains(label) || Self.publicLabels.contains(label) else {
                others.append(label.utf8.count > 40 ? "…" : Redaction.escaped(label))
                continue
            }
            text = String(block) + "\n"
            isPrivate = Self.privateLabels.contains(label)
            isEncrypted = label.hasBytePrefix("ENCRYPTED") || block.containsScalars(of: "Proc-Type: 4,ENCRYPTED")
            return
        }
        guard let other = others.first else { throw .invalidKey("it has no PEM block") }
        throw .invalidKey("its PEM block is not that of a key: \(other)")
    }
}
