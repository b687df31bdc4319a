// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

extension URLError {
    /// The error of a task as its program sees it: with the code that Apple's sessions have for the cause, the URL, and the error of Curlew
    /// under `NSUnderlyingErrorKey`.
    static func of(_ error: any Error, _ task: URLSessionTask, resumeData: Data? = nil) -> any Error {
        (error as? CurlewError)?.urlError ?? error
    }

    /// An error without one of Curlew.
    static func of(_ code: URLError.Code, _ task: URLSessionTask) -> URLError { URLError(code) }
}
