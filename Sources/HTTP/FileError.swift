// SPDX-License-Identifier: Apache-2.0

/// Makes the errors that Foundation's users know of what the C library says about a file.
package enum FileError {
    /// The error for a file that could not be opened for reading, or not be read to its end.
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

    /// The error for a file that could not be made, written or moved.
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
