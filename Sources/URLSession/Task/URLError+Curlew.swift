// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

// The errors of tasks. Under `NSURLErrorFailingURLErrorKey` is the URL of the last exchange as it is, as programs compare and request it;
// everything that is a text has it redacted (`Redaction`), the one under `NSURLErrorFailingURLStringErrorKey` too.

extension URLError {
    /// The value of `NSURLErrorFailingURLStringErrorKey`, which is deprecated: programs still read it.
    static let failingURLStringKey = "NSErrorFailingURLStringKey"

    /// The error of a task as its program sees it: with the code that Apple's sessions have for the cause, the URL, and the error of Curlew
    /// under `NSUnderlyingErrorKey`.
    ///
    /// An error that is not Curlew's, as one of a `URLProtocol` class or an interceptor, is returned as it is, but for those of files.
    static func of(_ error: any Error, _ task: URLSessionTask, resumeData: Data? = nil) -> any Error {
        let code: URLError.Code
        switch error {
        case let error as CurlewError: code = task.trustCode(error) ?? error.urlError?.code ?? .unknown
        case let error as CocoaError:
            guard let known = FileError.urlErrorCode(error) else { return error }
            code = known
        case let error as POSIXError:
            guard let known = FileError.urlErrorCode(error, isWriting: task is URLSessionDownloadTask) else { return error }
            code = known
        default: return error
        }
        var info = userInfo(of: task)
        info[NSUnderlyingErrorKey] = error
        info[NSLocalizedDescriptionKey] = (error as? CurlewError)?.description ?? Redaction.escaped(FileError.text(error))
        if let resumeData { info[NSURLSessionDownloadTaskResumeData] = resumeData }
        return URLError(_nsError: TaskError(code, info))
    }

    /// An error without one of Curlew.
    static func of(_ code: URLError.Code, _ task: URLSessionTask, resumeData: Data? = nil) -> URLError {
        var info = userInfo(of: task)
        if let resumeData { info[NSURLSessionDownloadTaskResumeData] = resumeData }
        let url = (info[failingURLStringKey] as? String).map { ": \($0)" } ?? ""
        info[NSLocalizedDescriptionKey] = Redaction.escaped(text(of: code) + url)
        return URLError(_nsError: TaskError(code, info))
    }

    private static func userInfo(of task: URLSessionTask) -> [String: Any] {
        guard let url = (task.currentRequest ?? task.originalRequest)?.url else { return [:] }
        return [NSURLErrorFailingURLErrorKey: url, failingURLStringKey: url.absoluteString.redactedURL]
    }

    private static func text(of code: URLError.Code) -> String {
        switch code {
        case .badServerResponse: "The server's response is not valid"
        case .badURL: "The URL is not valid"
        case .cancelled: "The task was cancelled"
        case .cannotOpenFile: "The file can't be opened"
        case .cannotWriteToFile: "The file can't be written"
        case .dataLengthExceedsMaximum: "There are too many bytes"
        case .fileDoesNotExist: "The file does not exist"
        case .fileIsDirectory: "The file is a directory"
        case .noPermissionsToReadFile: "There is no permission to read the file"
        case .timedOut: "The task has timed out"
        case .unsupportedURL: "The URL is not supported"
        default: "The task has failed, code \(code.rawValue)"
        }
    }
}

/// Foundation's error inside a `URLError`, whose own description shows the URL as it is.
private final class TaskError: NSError, @unchecked Sendable {  // as its superclass, immutable
    init(_ code: URLError.Code, _ info: [String: Any]) {
        super.init(domain: NSURLErrorDomain, code: code.rawValue, userInfo: info)
    }

    /// Not called: archives have the superclass.
    required init?(coder: NSCoder) { super.init(coder: coder) }

    override var classForCoder: AnyClass { NSError.self }

    override var description: String { "Error Domain=\(domain) Code=\(code) \"\(localizedDescription)\"" }
}

extension TaskError: CustomReflectable {
    var customMirror: Mirror { .redacted(self, ["description": description]) }
}

extension URLError {
    /// The data by which a failed download can be resumed, under ``NSURLSessionDownloadTaskResumeData``; `nil` if it can't be, and for other
    /// errors.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }
}

extension URLSessionTask {
    /// Notes the server about which a delegate is asked, and whether it ends the task.
    func noteAnswer(_ disposition: URLSession.AuthChallengeDisposition, to challenge: URLAuthenticationChallenge) {
        guard let trust = challenge.protectionSpace.shownTrust else { return }
        values.withLock { $0.askedTrust = (trust, disposition == .cancelAuthenticationChallenge) }
    }

    /// The code for a server about which the delegate was asked: libcurl has not verified it, and so does not say what is wrong.
    fileprivate func trustCode(_ error: CurlewError) -> URLError.Code? {
        guard case .transferFailed(let failure) = error, failure.kind == .serverCertificate, failure.isRefusedByPolicy,
            let (trust, isCancelled) = values.withLock({ $0.askedTrust })
        else { return nil }
        if isCancelled { return .cancelled }
        let now = Date()
        guard let leaf = trust.sentCertificates.first else { return nil }
        if leaf.notAfter < now { return .serverCertificateHasBadDate }
        if leaf.notBefore > now { return .serverCertificateNotYetValid }
        return leaf.subject == leaf.issuer ? .serverCertificateHasUnknownRoot : nil
    }
}

extension FileError {
    /// The code for an error of Foundation about a file; `nil` for others.
    fileprivate static func urlErrorCode(_ error: CocoaError) -> URLError.Code? {
        let cause = (error.userInfo[NSUnderlyingErrorKey] as? POSIXError)?.code
        switch error.code {
        case .fileReadNoSuchFile: return .fileDoesNotExist
        case .fileReadNoPermission: return .noPermissionsToReadFile
        case .fileReadUnknown where cause == .EISDIR: return .fileIsDirectory
        case .fileReadUnknown, .fileReadCorruptFile, .fileReadInvalidFileName, .fileReadTooLarge: return .cannotOpenFile
        case .fileNoSuchFile, .fileWriteFileExists, .fileWriteInvalidFileName: return .cannotCreateFile
        case .fileWriteNoPermission, .fileWriteVolumeReadOnly: return .cannotCreateFile
        case .fileWriteUnknown where cause == .EXDEV: return .cannotMoveFile
        case .fileWriteOutOfSpace, .fileWriteUnknown: return .cannotWriteToFile
        default: return nil
        }
    }

    /// The code for the system's error about a file; `nil` for those that are not about files.
    fileprivate static func urlErrorCode(_ error: POSIXError, isWriting: Bool) -> URLError.Code? {
        switch error.code {
        case .ENOENT, .ENOTDIR: isWriting ? .cannotCreateFile : .fileDoesNotExist
        case .EISDIR: .fileIsDirectory
        case .EACCES, .EPERM: isWriting ? .cannotCreateFile : .noPermissionsToReadFile
        case .ENOSPC, .EDQUOT, .EROFS, .EFBIG: .cannotWriteToFile
        case .EXDEV: .cannotMoveFile
        default: nil
        }
    }
}
