// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback

extension Cassette {
    /// Imports an HTTP archive (HAR 1.2), as browsers and proxies write it, into a cassette.
    ///
    /// Entries without a response (status 0) are left out, pseudo fields of HTTP/2 as well. Bodies of archives are decoded; those that the
    /// archive does not have are empty. Everything is redacted as if it were recorded.
    ///
    /// - Parameters:
    ///   - archive: the archive's bytes.
    ///   - directory: where the exchanges are written, after those that are there; `nil`, the default, for memory only.
    ///   - redaction: what is left out.
    /// - Throws: ``CassetteError`` for what is no archive; the error of ``init(directory:redaction:)``. Errors of writing come with
    ///   ``flush()``.
    public convenience init(har archive: Data, into directory: URL? = nil, redaction: CassetteRedaction = CassetteRedaction()) throws {
        let log: Archive.Log
        do {
            log = try JSONDecoder().decode(Archive.self, from: archive).log
        } catch {
            throw CassetteError("The archive is not HAR: \(error)")
        }
        let exchanges = try log.entries.compactMap { try $0.exchange() }
        guard let directory else {
            self.init(exchanges, redaction: redaction)
            return
        }
        try self.init(directory: directory, redaction: redaction)
        for exchange in exchanges { add(exchange) }
    }
}

/// The parts of an archive that a cassette needs (HAR 1.2).
private struct Archive: Decodable {
    struct Log: Decodable {
        let entries: [Entry]
    }

    struct Pair: Decodable {
        let name: String
        let value: String?
    }

    struct Request: Decodable {
        let method: String
        let url: String
        let headers: [Pair]
        let postData: PostData?
    }

    struct PostData: Decodable {
        let mimeType: String?
        let text: String?
        let params: [Pair]?
        let encoding: String?
    }

    struct Response: Decodable {
        let status: Int
        let headers: [Pair]
        let content: Content?
    }

    struct Content: Decodable {
        let mimeType: String?
        let text: String?
        let encoding: String?
    }

    struct Entry: Decodable {
        let request: Request
        let response: Response
    }

    let log: Log
}

extension Archive.Entry {
    func exchange() throws -> StoredExchange? {
        guard response.status > 0 else { return nil }
        var headers = Self.headers(response.headers)
        for name in ["Content-Encoding", "Content-Length", "Transfer-Encoding"] { headers.remove(name: name) }
        if headers["Content-Type"] == nil, let type = response.content?.mimeType, !type.isEmpty { headers.append(.contentType(type)) }
        return StoredExchange(
            method: request.method, url: request.url, headers: Self.headers(request.headers),
            body: try request.postData.map { try $0.body() } ?? Data(),
            outcome: .response(
                status: response.status, headers: headers,
                body: try Self.bytes(response.content?.text, response.content?.encoding), trailers: [:]))
    }

    private static func headers(_ pairs: [Archive.Pair]) -> HTTPHeaders {
        HTTPHeaders(pairs.filter { !$0.name.hasBytePrefix(":") }.map { HTTPHeader(name: $0.name, value: $0.value ?? "") })
    }

    fileprivate static func bytes(_ text: String?, _ encoding: String?) throws -> Data {
        guard let text else { return Data() }
        guard encoding?.lowercased() == "base64" else { return Data(text.utf8) }
        guard let bytes = Data(base64Encoded: text, options: .ignoreUnknownCharacters) else {
            throw CassetteError("The archive has a body that is not Base64")
        }
        return bytes
    }
}

extension Archive.PostData {
    fileprivate func body() throws -> Data {
        guard text == nil, let params else { return try Archive.Entry.bytes(text, encoding) }
        var allowed = CharacterSet.alphanumerics
        allowed.insert(charactersIn: "-._~")
        func encoded(_ text: String) -> String { text.addingPercentEncoding(withAllowedCharacters: allowed) ?? text }
        return Data(params.map { "\(encoded($0.name))=\(encoded($0.value ?? ""))" }.joined(separator: "&").utf8)
    }
}
