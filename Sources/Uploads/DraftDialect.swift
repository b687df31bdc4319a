// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Resumable uploads for HTTP, draft-ietf-httpbis-resumable-upload-11: interop version 8.
struct DraftDialect: UploadDialect {
    static let name = "draft-8"
    private static let version = 8

    /// What a server accepts (`Upload-Limit`).
    private struct Limits: Sendable {
        var maximumSize: Int64?
        var maximumAppend: Int64?
        var minimumAppend: Int64?
        var age: Int64?

        /// Reads the field; `nil` without a valid one. A member of another type makes all of it invalid.
        init?(_ head: ResponseHead) {
            guard let text = head.value(for: "Upload-Limit"), let members = try? StructuredFields.dictionary(from: text) else { return nil }
            for member in members {
                guard ["max-size", "min-size", "max-append-size", "min-append-size", "max-age"].contains(member.key) else { continue }
                guard case .item(let item) = member.value, case .integer(let number) = item.value, number >= 0 else { return nil }
                switch member.key {
                case "max-size": maximumSize = Int64(number)
                case "max-append-size": maximumAppend = number > 0 ? Int64(number) : nil  // no upload could be appended by nothing
                case "min-append-size": minimumAppend = Int64(number)
                case "max-age": age = Int64(number)
                default: break
                }
            }
        }
    }

    /// What has been learnt about the size of requests.
    private struct Known: Sendable {
        var limits: Limits?
        /// The bytes of the last request.
        var sent: Int64 = 0
        /// The most bytes of a request, after one with more was refused; without limit at first.
        var ceiling = Int64.max
        var refusals = 0
    }

    /// A request that is longer than the server has announced to accept.
    struct RequestTooLong: Error {}

    /// The least size that is tried after refusals by a server or an intermediary that does not say what it accepts.
    private static let leastGuess: Int64 = 64 << 10
    private static let mostRefusals = 32

    private let options: ResumableUpload.Options
    private let method: HTTPMethod
    private let known = Lock(Known())
    /// Whether the server is known to support it, so that a part of the file can be sent.
    private var isKnown = false

    init(_ options: ResumableUpload.Options, method: HTTPMethod) {
        (self.options, self.method) = (options, method)
    }

    var metadata: String { method.rawValue }

    /// Repeating a request whose outcome is unknown could do twice what it does.
    func mayBeginAgain(after error: any Error) -> Bool {
        if options.retryPolicy.retryableHTTPMethods.contains(method) { return true }
        if case CurlewError.transferFailed(let failure) = error { return !failure.requestWasSent }
        return false
    }

    /// The server has all of the file: what it says is about that.
    func isFinal(_ head: ResponseHead) -> Bool { head.boolean("Upload-Complete") == true }

    func chunk(of rest: Int64) -> Int64 {
        let (limits, ceiling) = known.withLock { ($0.limits, $0.ceiling) }
        let size = min(max(options.chunk(of: .max), limits?.minimumAppend ?? 0), limits?.maximumAppend ?? .max, ceiling)
        return min(max(size, 1), rest)
    }

    // MARK: What the server supports

    mutating func discover(_ client: UploadClient) async throws {
        // Without a limit the creation has the whole file, as the upload of a client without resumption does.
        guard options.chunkSize != nil || options.verifiesChunks else { return }
        try await ask(client)
    }

    private mutating func ask(_ client: UploadClient) async throws {
        let head: ResponseHead
        do {
            head = try await client.send(.options, client.endpoint, Self.fields).head
        } catch let refusal as UploadClient.Refusal where (400..<500).contains(refusal.status) && ![408, 429].contains(refusal.status) {
            return
        }
        let types = (head.value(for: "Accept-Patch") ?? "").splitScalars(separator: ",").map { $0.mediaType.lowercased() }
        isKnown =
            types.contains("application/partial-upload") && head.integer("Upload-Draft-Interop-Version") ?? Self.version == Self.version
        note(head)
    }

    /// Makes the next requests smaller after a 413 (section 4.1.4): than the server's limit, or a quarter of the refused one where it does
    /// not say what it accepts, as an intermediary may have refused it. Only if the server is known to support parts.
    mutating func shrink(after refusal: UploadClient.Refusal, _ upload: URL?, _ client: UploadClient, _ file: UploadedFile) async throws
        -> Bool
    {
        note(refusal.head)
        try checkLength(of: file)
        let isSupported = upload != nil || Limits(refusal.head) != nil
        if !isSupported, !isKnown {
            // An upload that fails for its size says so, also where the question fails.
            do { try await ask(client) } catch { try Task.checkCancellation() }
        }
        isKnown = isKnown || isSupported
        guard isKnown else { return false }
        try checkLength(of: file)
        return known.withLock { known in
            known.refusals += 1
            guard known.refusals <= Self.mostRefusals else { return false }
            if let limit = known.limits?.maximumAppend, limit < known.sent { return true }
            let size = known.sent / 4
            guard size >= max(known.limits?.minimumAppend ?? 0, Self.leastGuess) else { return false }
            known.ceiling = size
            return true
        }
    }

    private func note(_ head: ResponseHead) {
        if let found = Limits(head) { known.withLock { $0.limits = found } }
    }

    private func checkLength(of file: UploadedFile) throws {
        guard let limit = known.withLock({ $0.limits?.maximumSize }), file.length > limit else { return }
        throw ResumableUploadError(
            kind: .tooLarge, subject: file.url.path, message: "the file has \(file.length) bytes; the server accepts \(limit)")
    }

    private static var fields: HTTPHeaders { ["Upload-Draft-Interop-Version": "\(version)"] }

    // MARK: Requests

    func create(
        _ client: UploadClient, _ file: UploadedFile, announce: @escaping @Sendable (_ upload: URL, _ sender: String?) throws -> Void
    ) async throws -> UploadState {
        try checkLength(of: file)
        let takesParts = isKnown || known.withLock { $0.limits?.maximumAppend != nil }
        let slice = UploadClient.Slice(offset: 0, length: takesParts ? chunk(of: file.length) : file.length)
        let isWhole = slice.length == file.length
        var fields = Self.fields
        fields.update(name: "Upload-Complete", value: isWhole ? "?1" : "?0")
        fields.update(name: "Upload-Length", value: "\(file.length)")
        if let digest = file.digest {
            fields.reprDigest = digest
            fields.update(name: "Want-Repr-Digest", value: "sha-256=10")
        }
        try await prepare(slice, file, &fields)
        let named = Lock<URL?>(nil)
        @Sendable func name(_ head: ResponseHead, _ base: URL, _ sender: String?) throws {
            let upload = try client.uploadURL(head.value(for: "Location"), from: base)
            let isNew = named.withLock { named in
                defer { named = upload }
                return named != upload
            }
            if isNew { try announce(upload, sender) }
        }
        let reply = try await client.send(method, client.endpoint, fields, slice) { head, base, sender in
            // One of another version is ignored: the upload is a plain one.
            guard head.statusCode == 104, head.integer("Upload-Draft-Interop-Version") == Self.version else { return }
            note(head)
            if head.value(for: "Location") != nil { try name(head, base, sender) }
            try checkLength(of: file)
            // The rest is appended.
            let limit = known.withLock { $0.limits?.maximumAppend } ?? .max
            if slice.length > limit, named.withLock({ $0 != nil }) { throw RequestTooLong() }
        }
        note(reply.head)
        // The response to the whole file is that of the resource, also of one that knows nothing of resumption.
        if isWhole, reply.head.boolean("Upload-Complete") != false {
            try verify(reply, file)
            return UploadState(offset: file.length, isComplete: true, reply: reply)
        }
        // The last one counts, as the offset of this response is that of the upload that it names.
        if reply.head.value(for: "Location") != nil || named.withLock({ $0 }) == nil { try name(reply.head, reply.url, reply.sender) }
        return UploadState(offset: reply.head.integer("Upload-Offset").map(Int64.init), expires: expiry, reply: reply)
    }

    func state(of upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState {
        let reply = try await client.send(.head, upload, Self.fields)
        note(reply.head)
        guard let offset = reply.head.integer("Upload-Offset").map(Int64.init), (0...file.length).contains(offset) else {
            throw ResumableUploadError.invalidResponse(upload, "the server reports no valid Upload-Offset")
        }
        if let length = reply.head.integer("Upload-Length").map(Int64.init), length != file.length {
            throw ResumableUploadError.invalidResponse(upload, "the upload is one of \(length) bytes, not of \(file.length)")
        }
        if isFinal(reply.head) { try verify(reply, file) }
        return UploadState(offset: offset, isComplete: isFinal(reply.head), expires: expiry, reply: reply)
    }

    func append(_ slice: UploadClient.Slice, to upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState {
        try checkLength(of: file)
        var fields = Self.fields
        fields.update(name: "Upload-Complete", value: slice.offset + slice.length == file.length ? "?1" : "?0")
        fields.update(name: "Upload-Offset", value: "\(slice.offset)")
        fields.update(name: "Content-Type", value: "application/partial-upload")
        try await prepare(slice, file, &fields)
        let reply = try await client.send(.patch, upload, fields, slice)
        note(reply.head)
        if isFinal(reply.head) {
            try verify(reply, file)
            return UploadState(offset: file.length, isComplete: true, reply: reply)
        }
        return UploadState(offset: slice.length > 0 ? offset(after: slice, reply) : nil, expires: expiry, reply: reply)
    }

    /// The offset after an append that does not complete the upload: all of it, unless the server says otherwise.
    private func offset(after slice: UploadClient.Slice, _ reply: UploadClient.Reply) -> Int64? {
        guard reply.head.boolean("Upload-Complete") == false else { return nil }
        guard let offset = reply.head.integer("Upload-Offset").map(Int64.init) else { return slice.offset + slice.length }
        return (slice.offset...slice.offset + slice.length).contains(offset) ? offset : nil
    }

    /// Notes the size of a request, and adds a digest of its bytes if that is asked for (RFC 9530, section 2).
    private func prepare(_ slice: UploadClient.Slice, _ file: UploadedFile, _ fields: inout HTTPHeaders) async throws {
        known.withLock { $0.sent = slice.length }
        guard options.verifiesChunks else { return }
        fields.contentDigest = ContentDigest(sha256: try await file.digest(.sha256, slice.offset..<slice.offset + slice.length))
    }

    /// Compares the digest of what the server has received with the file's, if it was asked for and has come (RFC 9530, section 3).
    private func verify(_ reply: UploadClient.Reply, _ file: UploadedFile) throws {
        guard let expected = file.digest, let found = reply.head.headers.reprDigest, let digest = found.digests[.sha256],
            digest != expected.digests[.sha256], !found.matches(reply.body)  // as one of the response's body does
        else { return }
        throw ResumableUploadError(
            kind: .checksumMismatch, subject: reply.url.absoluteString.redactedURL,
            message: "the server has received other bytes than the file has")
    }

    func remove(_ upload: URL, _ client: UploadClient) async throws {
        try await remove(upload, client, Self.fields)
    }

    private var expiry: Date? { known.withLock { $0.limits?.age }.map { Date(timeIntervalSinceNow: TimeInterval($0)) } }
}

extension ResponseHead {
    /// The value of a field that is an integer (RFC 9651); `nil` without a valid one.
    fileprivate func integer(_ name: String) -> Int? {
        guard let text = value(for: name), case .integer(let number)? = try? StructuredFields.item(from: text).value else { return nil }
        return number
    }

    /// The value of a field that is a boolean (RFC 9651); `nil` without a valid one.
    fileprivate func boolean(_ name: String) -> Bool? {
        guard let text = value(for: name), case .boolean(let isTrue)? = try? StructuredFields.item(from: text).value else { return nil }
        return isTrue
    }
}
