// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport

/// Resumable uploads for HTTP, draft-ietf-httpbis-resumable-upload-11.
extension TusServer.Connection {
    func respondToDraft(_ entry: TusServer.Entry, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse {
        switch entry.method {
        case "OPTIONS": return .status(204, headers: [ServerField("Accept-Patch", "application/partial-upload")] + limits)
        case "POST", "PUT": return try create(entry, read)
        case "HEAD":
            guard let upload = state.withLock({ $0.uploads[entry.path] }) else { return .status(404) }
            let fields = [ServerField("Upload-Length", "\(upload.length)"), ServerField("Cache-Control", "no-store")]
            return .status(204, headers: offset(upload) + [complete(upload.isComplete)] + fields + limits)
        case "PATCH": return try append(entry, read)
        case "DELETE": return .status(state.withLock { $0.uploads.removeValue(forKey: entry.path) } == nil ? 404 : 204)
        default: return .status(405)
        }
    }

    private var limits: [ServerField] { settings.limit.map { [ServerField("Upload-Limit", $0)] } ?? [] }
    private func offset(_ upload: TusServer.Upload?) -> [ServerField] { [ServerField("Upload-Offset", "\(upload?.bytes.count ?? 0)")] }
    private func complete(_ isComplete: Bool) -> ServerField { ServerField("Upload-Complete", isComplete ? "?1" : "?0") }

    private func sendInterim(_ fields: [ServerField]) throws {
        let version = ServerField("Upload-Draft-Interop-Version", "\(settings.draft ?? 0)")
        let lines = (fields + [version]).map { "\($0.name): \($0.value)\r\n" }.joined()
        try socket.send(Data("HTTP/1.1 104 Upload Resumption Supported\r\n\(lines)\r\n".utf8))
    }

    /// Reads a body into an upload: at once, or if it has its digest.
    ///
    /// - Returns: the response if it has not.
    private func receive(_ entry: TusServer.Entry, into path: String, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse? {
        let number = state.withLock { state in
            state.bodies += 1
            return state.bodies
        }
        var isFirst = settings.corrupted.contains(number)
        func changed(_ data: Data) -> Data {
            defer { isFirst = isFirst && data.isEmpty }
            return isFirst && !data.isEmpty ? Data([~data[data.startIndex]]) + data.dropFirst() : data
        }
        guard let digest = HTTPHeaders(["Content-Digest": entry.header("Content-Digest") ?? ""]).contentDigest else {
            try read { data in state.withLock { $0.uploads[path]?.bytes.append(changed(data)) } }
            return nil
        }
        var body = Data()
        try read { body.append(changed($0)) }
        guard digest.matches(body) else { return mismatch }
        state.withLock { $0.uploads[path]?.bytes.append(body) }
        return nil
    }

    private var mismatch: ServerResponse {
        let type = "https://iana.org/assignments/http-problem-types#digest-mismatched-values"
        let fields = [ServerField("Content-Type", "application/problem+json")]
        return ServerResponse(status: 400, headers: fields, body: .data(Data(#"{"type": "\#(type)"}"#.utf8)))
    }

    private func isTooLarge(_ entry: TusServer.Entry) -> Bool {
        (entry.header("Content-Length").flatMap { Int64($0) } ?? 0) > settings.largestBody ?? .max
    }

    private func create(_ entry: TusServer.Entry, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse {
        if isTooLarge(entry) {
            try read { _ in }
            return .status(413, headers: limits)
        }
        guard let length = entry.header("Upload-Length").flatMap({ Int64($0) }) else { return .status(400) }
        let path = state.withLock { state in
            state.created += 1
            let path = "/files/\(state.created)"
            var upload = TusServer.Upload(length: length)
            upload.digest = HTTPHeaders(["Repr-Digest": entry.header("Repr-Digest") ?? ""]).reprDigest
            upload.wantsDigest = entry.header("Want-Repr-Digest") != nil
            state.uploads[path] = upload
            return path
        }
        func location() -> ServerField { ServerField("Location", settings.location(path)) }
        if settings.announces { try sendInterim([location()] + limits) }
        if settings.stallsAfterAnnouncement {
            socket.drain(timeout: .seconds(20))
            throw TusServer.Cut()
        }
        do {
            if let refusal = try receive(entry, into: path, read) { return refusal }
        } catch {
            // Without an announcement the bytes are lost.
            if !settings.announces || entry.header("Upload-Draft-Interop-Version") != "\(settings.draft ?? 0)" {
                state.withLock { $0.uploads[path] = nil }
            }
            throw error
        }
        guard entry.header("Upload-Complete") == "?1" else { return .status(201, headers: [location(), complete(false)] + limits) }
        return finished(path)
    }

    private func finished(_ path: String) -> ServerResponse {
        let upload = state.withLock { state in
            state.uploads[path]?.isComplete = true
            return state.uploads[path]
        }
        guard let upload, upload.digest?.matches(upload.bytes) ?? true || !settings.verifiesDigest else { return mismatch }
        let response = ServerResponse.ok("stored").header("Upload-Complete", "?1")
        guard upload.wantsDigest else { return response }
        var headers = HTTPHeaders()
        headers.reprDigest = ContentDigest(of: upload.bytes)
        return response.header("Repr-Digest", headers["Repr-Digest"] ?? "")
    }

    private func append(_ entry: TusServer.Entry, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse {
        guard entry.header("Content-Type") == "application/partial-upload" else { return .status(415) }
        guard let upload = state.withLock({ $0.uploads[entry.path] }), !upload.isComplete else {
            try read { _ in }
            return .status(404)
        }
        guard entry.header("Upload-Offset") == "\(upload.bytes.count)" else {
            try read { _ in }
            return .status(409, headers: offset(upload))
        }
        if isTooLarge(entry) {
            try read { _ in }
            return .status(413, headers: limits)
        }
        try sendInterim(offset(upload))
        if let refusal = try receive(entry, into: entry.path, read) { return refusal }
        guard entry.header("Upload-Complete") == "?1" else { return .status(204, headers: [complete(false)]) }
        return finished(entry.path)
    }
}
