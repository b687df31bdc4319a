// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a segmented download has failed, where neither a request nor a file has: these fail with `CurlewError` and `CocoaError`.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum SegmentedDownloadError: Error, Sendable, Equatable {
    /// There is no URL to download from.
    case noURL
    /// Another download writes to the part file, in this process or another.
    case inUse(URL)
    /// The file's content changed on the server again and again while it was downloaded; the URL is redacted.
    case changing(url: String)
    /// The server's partial responses contradict themselves or the request, and its whole one is incomplete; the URL is redacted.
    case invalidResponse(url: String, reason: String)
    /// The complete file does not have the digest that the caller or the server (RFC 9530) has named. It was removed.
    case digestMismatch(algorithm: String, expected: Data, actual: Data)
}

// MARK: - Descriptions

extension SegmentedDownloadError: CustomStringConvertible {
    /// What failed, on what, and why.
    public var description: String {
        switch self {
        case .noURL: "there is no URL to download from"
        case .inUse(let file): "\(file.path): another download writes to this file"
        case .changing(let url): "\(url): the file changed on the server again and again while it was downloaded"
        case .invalidResponse(let url, let reason): "\(url): \(reason)"
        case .digestMismatch(let algorithm, let expected, let actual):
            "the file's \(algorithm) is \(actual.hexDigits), not \(expected.hexDigits); it was removed"
        }
    }
}

extension SegmentedDownloadError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}
