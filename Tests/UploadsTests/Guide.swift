// SPDX-License-Identifier: Apache-2.0
// snippet: ten
import Curlew
import CurlewUploads

func uploadVideo(_ file: URL, with manager: SessionManager, to url: String, token: String) async throws -> URL? {
    var options = ResumableUpload.Options()
    options.metadata = ["filename": file.lastPathComponent]
    options.headers = [.authorization(bearerToken: token)]
    let upload = manager.resumableUpload(file, to: url, options: options)
    return try await upload.response.uploadURL
}
// end

// snippet: control
func upload(_ file: URL, with manager: SessionManager, to url: String, show: (Double) -> Void) async throws {
    let upload = manager.resumableUpload(file, to: url)
    upload.resume()
    for await progress in upload.progressUpdates where progress.total > 0 {
        show(Double(progress.completed) / Double(progress.total))
    }
    _ = try await upload.value  // throws what the upload has failed with
}
// end

// snippet: errors
func uploadOrRemove(_ upload: ResumableUpload) async throws -> Bool {
    do {
        _ = try await upload.response
        return true
    } catch let error as ResumableUploadError where error.kind == .tooLarge || error.kind == .forbidden {
        print(error)  // the URL, redacted, and the reason
        try await upload.cancel(removingFromServer: true)
        return false
    }
}
// end

// snippet: draft
func publish(_ file: URL, with manager: SessionManager, to url: String) async throws -> Data {
    var options = ResumableUpload.Options()
    options.dialect = .httpDraft(method: .put)
    options.headers = [.contentType("video/mp4")]
    return try await manager.resumableUpload(file, to: url, options: options).value
}
// end
