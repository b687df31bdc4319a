// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension AFError.MultipartEncodingFailureReason {
    /// The corresponding reason; reasons that Alamofire lacks become errors of reading or writing.
    init(_ reason: CurlewError.MultipartEncodingFailureReason) {
        switch reason {
        case .bodyPartURLInvalid(let url): self = .bodyPartURLInvalid(url: url)
        case .bodyPartFilenameInvalid(let url): self = .bodyPartFilenameInvalid(in: url)
        case .bodyPartFileNotReachable(let url): self = .bodyPartFileNotReachable(at: url)
        case .bodyPartFileNotReachableWithError(let url, let error): self = .bodyPartFileNotReachableWithError(atURL: url, error: error)
        case .bodyPartFileIsDirectory(let url): self = .bodyPartFileIsDirectory(at: url)
        case .bodyPartFileSizeNotAvailable(let url): self = .bodyPartFileSizeNotAvailable(at: url)
        case .bodyPartFileSizeQueryFailedWithError(let url, let error):
            self = .bodyPartFileSizeQueryFailedWithError(forURL: url, error: error)
        case .bodyPartInputStreamCreationFailed(let url): self = .bodyPartInputStreamCreationFailed(for: url)
        case .outputStreamCreationFailed(let url): self = .outputStreamCreationFailed(for: url)
        case .outputStreamFileAlreadyExists(let url): self = .outputStreamFileAlreadyExists(at: url)
        case .outputStreamURLInvalid(let url): self = .outputStreamURLInvalid(url: url)
        case .outputStreamWriteFailed(let error): self = .outputStreamWriteFailed(error: error)
        case .inputStreamReadFailed(let error): self = .inputStreamReadFailed(error: error)
        case .bodyPartLengthMismatch, .bodyPartStreamConsumed:
            self = .inputStreamReadFailed(error: CurlewError.multipartEncodingFailed(reason: reason))
        case .bodyPartHeaderInvalid, .boundaryInvalid:
            self = .outputStreamWriteFailed(error: CurlewError.multipartEncodingFailed(reason: reason))
        }
    }
}

extension CurlewError.MultipartEncodingFailureReason {
    /// The reverse conversion.
    init(_ reason: AFError.MultipartEncodingFailureReason) {
        switch reason {
        case .bodyPartURLInvalid(let url): self = .bodyPartURLInvalid(url: url)
        case .bodyPartFilenameInvalid(let url): self = .bodyPartFilenameInvalid(in: url)
        case .bodyPartFileNotReachable(let url): self = .bodyPartFileNotReachable(at: url)
        case .bodyPartFileNotReachableWithError(let url, let error): self = .bodyPartFileNotReachableWithError(atURL: url, error: error)
        case .bodyPartFileIsDirectory(let url): self = .bodyPartFileIsDirectory(at: url)
        case .bodyPartFileSizeNotAvailable(let url): self = .bodyPartFileSizeNotAvailable(at: url)
        case .bodyPartFileSizeQueryFailedWithError(let url, let error):
            self = .bodyPartFileSizeQueryFailedWithError(forURL: url, error: error)
        case .bodyPartInputStreamCreationFailed(let url): self = .bodyPartInputStreamCreationFailed(for: url)
        case .outputStreamCreationFailed(let url): self = .outputStreamCreationFailed(for: url)
        case .outputStreamFileAlreadyExists(let url): self = .outputStreamFileAlreadyExists(at: url)
        case .outputStreamURLInvalid(let url): self = .outputStreamURLInvalid(url: url)
        case .outputStreamWriteFailed(let error): self = .outputStreamWriteFailed(error: error)
        case .inputStreamReadFailed(let error): self = .inputStreamReadFailed(error: error)
        }
    }
}
