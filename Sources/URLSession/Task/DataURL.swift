// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// What a `data:` URL contains (RFC 2397).
struct DataURL {
    let mimeType: String
    /// The charset; `nil` if there is a media type without one.
    let charset: String?
    let data: Data

    /// - Throws: ``LocalFailure``: `badURL` for a URL without a comma, `cannotDecodeRawData` for bytes that are not Base64.
    init(_ url: URL) throws(LocalFailure) {
        let text = url.absoluteString
        let rest = text.dropScalars { $0 != ":" }.dropFirstScalars().prefixScalars { $0 != "#" }
        guard let comma = rest.unicodeScalars.firstIndex(of: ",") else { throw LocalFailure(code: .badURL) }
        let header = String(decoding: rest[..<comma].utf8.percentDecoded, as: UTF8.self)
        let body = Data(rest.suffix(afterScalarAt: comma).utf8.percentDecoded)
        let parts = header.splitScalars(separator: ";", omittingEmptySubsequences: false).map { $0.trimmingScalars { $0 == " " } }
        let isBase64 = parts.count > 1 && parts.last?.lowercased() == "base64"
        let type = parts.first.map(String.init) ?? ""
        // Only that of a media type which is left out; its charset may be given nevertheless.
        let parameters = parts.dropFirst().map { ";\($0)" }.joined().fieldParameters
        mimeType = type.isEmpty ? "text/plain" : type.lowercased()
        charset = parameters["charset"] ?? (type.isEmpty ? "US-ASCII" : nil)
        guard isBase64 else {
            data = body
            return
        }
        guard let decoded = Self.base64(body) else { throw LocalFailure(code: .cannotDecodeRawData) }
        data = decoded
    }

    /// Decodes Base64 (RFC 4648, section 4) with white space in it, and without its padding if that was left out.
    private static func base64(_ bytes: Data) -> Data? {
        var plain = Data(bytes.filter { !" \t\r\n\u{c}".utf8.contains($0) })
        while plain.count % 4 != 0, plain.last == UInt8(ascii: "=") { plain.removeLast() }
        if plain.count % 4 > 1 { plain += Data(repeating: UInt8(ascii: "="), count: 4 - plain.count % 4) }
        return plain.isEmpty ? Data() : Data(base64Encoded: plain)
    }
}
