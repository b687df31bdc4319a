// SPDX-License-Identifier: Apache-2.0
import Curlew

// snippet: resume
struct Archive {
    let manager: SessionManager

    /// Resumes from the bytes on disk: after a lost connection, and where a call that failed or an earlier process ended.
    func download(_ url: String, to file: URL) async throws -> URL {
        try await manager.download(
            url, interceptor: RetryPolicy(), to: file, options: [.resumePreviousDownload, .removePreviousFile]
        )
        .validate().serializingURL().value
    }
}
// end
