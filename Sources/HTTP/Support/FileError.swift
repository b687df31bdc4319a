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
        info["NSLocalizedDescription"] = text(CocoaError(kind, userInfo: info))
        return CocoaError(kind, userInfo: info)
    }

    // MARK: Texts

    /// Returns what a message says of an error: of a file's, what is wrong with which file (`the file "/x/y" does not exist`), without a
    /// full stop; of every other error, its description.
    ///
    /// In place of Foundation's texts, which on Linux are "Error Domain=NSCocoaErrorDomain Code=260 …", and name the file only in there.
    ///
    /// - Parameter path: the file that the error is about, named if the error does not name one.
    package static func text(_ error: any Error, of path: String? = nil) -> String {
        guard let error = error as? CocoaError else { return [path, "\(error)"].compactMap { $0 }.joined(separator: ": ") }
        let own = error.userInfo["NSFilePath"] as? String ?? (error.userInfo["NSURL"] as? URL)?.path
        if let path = own ?? path { return text(error, "the file \"\(path)\"") }
        return error.userInfo["NSDebugDescription"] as? String ?? "\(error)"
    }

    private static func text(_ error: CocoaError, _ file: String) -> String {
        switch error.code {
        case .fileReadNoSuchFile, .fileNoSuchFile: return "\(file) does not exist"
        case .fileReadNoPermission: return "there is no permission to read \(file)"
        case .fileWriteNoPermission: return "there is no permission to write \(file)"
        case .fileWriteFileExists: return "\(file) already exists"
        case .fileWriteOutOfSpace: return "\(file) can't be written: no space is left"
        case .fileWriteVolumeReadOnly: return "\(file) can't be written: its file system is read-only"
        default: break
        }
        let isWriting = (512..<768).contains(error.code.rawValue)
        let reason = (error.userInfo["NSUnderlyingError"] as? POSIXError).map { ": \(String(cString: strerror($0.code.rawValue)))" }
        return "\(file) can't be \(isWriting ? "written" : "read")\(reason ?? "")"
    }
}
