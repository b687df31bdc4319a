// SPDX-License-Identifier: Apache-2.0

/// Converts the C library's error numbers for files to Foundation's errors.
package enum FileError {
    /// Returns the error for a file that could not be opened for reading, or not be read completely.
    package static func reading(_ path: String, _ code: Int32) -> CocoaError {
        let kind: CocoaError.Code =
            switch code {
            case ENOENT, ENOTDIR: .fileReadNoSuchFile
            case EACCES, EPERM: .fileReadNoPermission
            case ENODATA: .fileReadCorruptFile
            default: .fileReadUnknown
            }
        return make(kind, path, code)
    }

    /// Returns the error for a file that could not be created, written or moved.
    package static func writing(_ path: String, _ code: Int32) -> CocoaError {
        let kind: CocoaError.Code =
            switch code {
            case ENOENT, ENOTDIR: .fileNoSuchFile
            case EACCES, EPERM: .fileWriteNoPermission
            case EEXIST: .fileWriteFileExists
            case ENOSPC, EDQUOT: .fileWriteOutOfSpace
            case EROFS: .fileWriteVolumeReadOnly
            default: .fileWriteUnknown
            }
        return make(kind, path, code)
    }

    private static func make(_ kind: CocoaError.Code, _ path: String, _ code: Int32) -> CocoaError {
        var info: [String: any Sendable] = ["NSFilePath": path, "NSURL": URL(fileURLWithPath: path)]
        if let posix = POSIXErrorCode(rawValue: code) { info["NSUnderlyingError"] = POSIXError(posix) }
        return CocoaError(kind, userInfo: info)
    }
}
