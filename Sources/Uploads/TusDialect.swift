// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The tus resumable upload protocol 1.0, with its extensions creation, creation-with-upload, termination, checksum and expiration.
struct TusDialect: UploadDialect {
    static let name = "tus"
    private static let version = "1.0.0"
    private static let contentType = "application/offset+octet-stream"

    private let options: ResumableUpload.Options
    /// The value of `Upload-Metadata`; empty without any.
    let metadata: String
    /// The extensions that the server lists; `nil` if it lists none.
    private var extensions: Set<String>?
    private var algorithm: UploadedFile.Algorithm?

    /// - Throws: ``ResumableUploadError/Kind/invalidMetadata``.
    init(_ options: ResumableUpload.Options) throws {
        self.options = options
        metadata = try options.metadata.sorted { $0.key < $1.key }.map { key, value in
            guard !key.isEmpty, key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ",") }) else {
                throw ResumableUploadError(
                    kind: .invalidMetadata, subject: "the metadata's key \"\(key)\"",
                    message: "a key is not empty, and has no spaces, commas and characters beyond ASCII")
            }
            return value.isEmpty ? key : "\(key) \(Data(value.utf8).base64EncodedString())"
        }.joined(separator: ",")
    }

    private func fields(_ others: HTTPHeaders = [:]) -> HTTPHeaders {
        var fields = others
        fields.update(name: "Tus-Resumable", value: Self.version)
        return fields
    }

    // MARK: What the server supports

    mutating func discover(_ client: UploadClient) async throws {
        let head: ResponseHead
        do {
            // The only request without `Tus-Resumable`.
            head = try await client.send(.options, client.endpoint, [:]).head
        } catch let refusal as UploadClient.Refusal where (400..<500).contains(refusal.status) && ![408, 429].contains(refusal.status) {
            // Some servers answer it only for browsers; what they support shows.
            return
        }
        let versions = Self.list(head, "Tus-Version")
        guard versions.isEmpty || versions.contains(Self.version) else {
            throw ResumableUploadError(
                kind: .unsupportedVersion, subject: client.endpoint.absoluteString.redactedURL,
                message: "the server supports tus \(versions.joined(separator: ", ")), not \(Self.version)")
        }
        if head.value(for: "Tus-Extension") != nil { extensions = Set(Self.list(head, "Tus-Extension")) }
        if let extensions, !extensions.contains("creation") {
            throw ResumableUploadError(
                kind: .unsupported, subject: client.endpoint.absoluteString.redactedURL,
                message: "the server does not support the creation of uploads")
        }
        let listed = Self.list(head, "Tus-Checksum-Algorithm")
        if options.verifiesChunks, extensions?.contains("checksum") == true {
            algorithm = UploadedFile.Algorithm.allCases.first { listed.contains($0.rawValue) }
        }
        limit = head.count("Tus-Max-Size")
    }

    /// The largest file that the server accepts; `nil` if it does not say so.
    private var limit: Int64?

    private static func list(_ head: ResponseHead, _ name: String) -> [String] {
        (head.value(for: name) ?? "").splitScalars(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
    }

    // MARK: Requests

    func create(
        _ client: UploadClient, _ file: UploadedFile, announce: @escaping @Sendable (_ upload: URL, _ sender: String?) throws -> Void
    ) async throws -> UploadState {
        if let limit, file.length > limit {
            throw ResumableUploadError(
                kind: .tooLarge, subject: file.url.path, message: "the file has \(file.length) bytes; the server accepts \(limit)")
        }
        var fields = fields(["Upload-Length": "\(file.length)"])
        if !metadata.isEmpty { fields.update(name: "Upload-Metadata", value: metadata) }
        var slice: UploadClient.Slice?
        if options.sendsDataWithCreation, file.length > 0, extensions?.contains("creation-with-upload") == true {
            let first = UploadClient.Slice(offset: 0, length: options.chunk(of: file.length))
            fields.update(name: "Content-Type", value: Self.contentType)
            try await addChecksum(of: first, file, to: &fields)
            slice = first
        }
        let reply = try await client.send(.post, client.endpoint, fields, slice)
        let upload = try client.uploadURL(reply.head.value(for: "Location"), from: reply.url)
        try announce(upload, reply.sender)
        let offset = reply.count("Upload-Offset") ?? (slice == nil ? 0 : nil)
        return state(offset, file, reply)
    }

    func state(of upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState {
        let reply = try await client.send(.head, upload, fields())
        guard let offset = reply.count("Upload-Offset"), offset <= file.length else {
            throw ResumableUploadError.invalidResponse(upload, "the server reports no valid Upload-Offset")
        }
        if let length = reply.count("Upload-Length"), length != file.length {
            throw ResumableUploadError.invalidResponse(upload, "the upload is one of \(length) bytes, not of \(file.length)")
        }
        return state(offset, file, reply)
    }

    func append(_ slice: UploadClient.Slice, to upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState {
        var fields = fields(["Upload-Offset": "\(slice.offset)", "Content-Type": Self.contentType])
        try await addChecksum(of: slice, file, to: &fields)
        let reply = try await client.send(.patch, upload, fields, slice)
        let offset = reply.count("Upload-Offset").flatMap { (slice.offset...slice.offset + slice.length).contains($0) ? $0 : nil }
        return state(offset, file, reply)
    }

    func remove(_ upload: URL, _ client: UploadClient) async throws { try await remove(upload, client, fields()) }

    /// A creation has no effect but an upload that expires.
    func mayBeginAgain(after error: any Error) -> Bool { true }

    func isFinal(_ head: ResponseHead) -> Bool { false }

    func chunk(of rest: Int64) -> Int64 { options.chunk(of: rest) }

    private func state(_ offset: Int64?, _ file: UploadedFile, _ reply: UploadClient.Reply) -> UploadState {
        let expires = reply.head.value(for: "Upload-Expires").flatMap { HTTPDate.date(from: $0) }
        return UploadState(offset: offset, isComplete: offset == file.length, expires: expires, reply: reply)
    }

    private func addChecksum(of slice: UploadClient.Slice, _ file: UploadedFile, to fields: inout HTTPHeaders) async throws {
        guard let algorithm else { return }
        let digest = try await file.digest(algorithm, slice.offset..<slice.offset + slice.length)
        fields.update(name: "Upload-Checksum", value: "\(algorithm.rawValue) \(Data(digest).base64EncodedString())")
    }
}
