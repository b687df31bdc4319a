// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The requests of a protocol for resumable uploads.
protocol UploadDialect: Sendable {
    /// The name in the record.
    static var name: String { get }

    /// A digest of what is said about the file: an upload of which something else was said is not continued.
    var metadata: String { get }

    /// Asks what the server supports; is called once, before the first creation.
    mutating func discover(_ client: UploadClient) async throws

    /// Begins an upload.
    ///
    /// - Parameter announce: is called with its URL and the request's sender, as soon as the server has named it, and throws if that can't be
    ///   used or recorded.
    func create(
        _ client: UploadClient, _ file: UploadedFile, announce: @escaping @Sendable (_ upload: URL, _ sender: String?) throws -> Void
    ) async throws -> UploadState

    /// Asks how much of an upload the server has.
    func state(of upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState

    /// Sends bytes.
    func append(_ slice: UploadClient.Slice, to upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState

    /// Removes an upload from the server.
    func remove(_ upload: URL, _ client: UploadClient) async throws
}

/// What a response says about an upload.
struct UploadState: Sendable {
    /// The number of bytes that the server has; `nil` if it has to be asked.
    var offset: Int64?
    var isComplete = false
    let reply: UploadClient.Reply
}
