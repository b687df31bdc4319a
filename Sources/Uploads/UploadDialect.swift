// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

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
    /// - Parameter announce: is called with its URL and the request's sender, as soon as the server has named it, and throws if that can't
    ///   be used or recorded.
    func create(
        _ client: UploadClient, _ file: UploadedFile, announce: @escaping @Sendable (_ upload: URL, _ sender: String?) throws -> Void
    ) async throws -> UploadState

    /// Asks how much of an upload the server has.
    func state(of upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState

    /// Sends bytes.
    func append(_ slice: UploadClient.Slice, to upload: URL, _ client: UploadClient, _ file: UploadedFile) async throws -> UploadState

    /// Removes an upload from the server.
    func remove(_ upload: URL, _ client: UploadClient) async throws

    /// Whether an upload may be begun again after an error of its creation, or after the server has lost it.
    func mayBeginAgain(after error: any Error) -> Bool

    /// Whether a refusal is about the whole file, so that nothing is left to send.
    func isFinal(_ head: ResponseHead) -> Bool

    /// The number of bytes of the next append.
    func chunk(of rest: Int64) -> Int64

    /// Makes the next requests smaller after one of them was refused as too large (413). Returns whether that can help.
    ///
    /// - Throws: ``ResumableUploadError/Kind/tooLarge`` if the file is.
    mutating func shrink(after refusal: UploadClient.Refusal, _ upload: URL?, _ client: UploadClient, _ file: UploadedFile) async throws
        -> Bool
}

extension UploadDialect {
    func shrink(after refusal: UploadClient.Refusal, _ upload: URL?, _ client: UploadClient, _ file: UploadedFile) -> Bool { false }

    /// Sends a `DELETE`; an upload that is gone already is no error.
    func remove(_ upload: URL, _ client: UploadClient, _ fields: HTTPHeaders) async throws {
        do {
            _ = try await client.send(.delete, upload, fields)
        } catch let refusal as UploadClient.Refusal where [404, 410].contains(refusal.status) {
            // It is gone already.
        } catch let refusal as UploadClient.Refusal where [405, 501].contains(refusal.status) {
            throw ResumableUploadError(
                kind: .unsupported, subject: upload.absoluteString.redactedURL,
                message: "the server does not support the removal of uploads",
                underlyingError: refusal.error)
        }
    }
}

/// What a response says about an upload.
struct UploadState: Sendable {
    /// The number of bytes that the server has; `nil` if it has to be asked.
    var offset: Int64?
    var isComplete = false
    /// When the server removes the upload; `nil` if it does not say so.
    var expires: Date?
    let reply: UploadClient.Reply
}
