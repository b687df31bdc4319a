// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// A task that receives a response into memory, or hands its body to the delegate piece by piece.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {  // as its superclass
    /// Has the delegate decide about a response.
    func decide(about response: URLResponse, _ completion: @escaping @Sendable (URLSession.ResponseDisposition) -> Void) {
        values.withLock { $0.response = response }
        ask(.response) { [self] (delegate: any URLSessionDataDelegate, task, answer: @escaping Answer<URLSession.ResponseDisposition>) in
            delegate.urlSession(task.session, dataTask: self, didReceive: response, completionHandler: answer)
        } answered: { [self] answer in
            if answer == .becomeStream {
                let error = URLError.of(.unsupportedURL, self)
                values.withLock { $0.failure = error }
            }
            completion(answer ?? .allow)
        }
    }

    func decide(aboutCaching proposed: CachedURLResponse, _ completion: @escaping @Sendable (CachedURLResponse?) -> Void) {
        let shown = Shown(proposed)
        ask(.caching) { [self] (delegate: any URLSessionDataDelegate, task, answer: @escaping Answer<Shown<CachedURLResponse?>>) in
            delegate.urlSession(task.session, dataTask: self, willCacheResponse: shown.value) { answer(Shown($0)) }
        } answered: {
            completion($0.map { $0.value } ?? shown.value)
        }
    }

    /// Hands a piece of the body to the delegate; the transfer pauses while too many wait.
    func take(_ piece: Data, _ taken: @escaping @Sendable () -> Void) {
        guard prefersIncrementalDelivery else {
            values.withLock { values in
                if values.collected == nil { values.collected = piece } else { values.collected?.append(piece) }
            }
            return taken()
        }
        session.queue.schedule { [self] in
            if !isOver { give(piece) }
            taken()
        }
    }

    /// Calls the delegate with bytes. On the delegate queue.
    func give(_ bytes: Data) {
        notifyNow { (delegate: any URLSessionDataDelegate, task) in
            delegate.urlSession(task.session, dataTask: self, didReceive: bytes)
        }
    }

    /// Makes the download task that takes the place of this one; with `ends`, `nil` if this one has ended, or is about to.
    ///
    /// - Parameter ends: whether this one ends by that. One with a request ends with it.
    @discardableResult
    func becomeDownload(ending ends: Bool = false) -> URLSessionDownloadTask? {
        let download = URLSessionDownloadTask(session, session.makeIdentifier(), work, .delegate)
        guard download.take(over: self, ending: ends) else { return nil }
        session.replace(self, by: download)
        notify { (delegate: any URLSessionDataDelegate, task) in
            guard let task = task as? URLSessionDataTask else { return }
            delegate.urlSession(task.session, dataTask: task, didBecome: download)
        }
        return download
    }
}

/// A data task that sends a body.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {  // as its superclass
    /// Cancels the task and calls `completionHandler` on the delegate queue, always with `nil`: no upload can be resumed.
    @preconcurrency open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        cancel()
        session.queue.schedule { completionHandler(nil) }
    }

    /// Cancels the task, and returns `nil`: no upload can be resumed.
    open func cancelByProducingResumeData() async -> Data? {
        cancel()
        return nil
    }
}

extension CurlewURLLoading.URLSession.ResponseDisposition {
    init(_ disposition: URLSession.ResponseDisposition) {
        // The raw values are the same; that of a download is deprecated in Foundation, and a stream can't be made.
        self = Self(rawValue: disposition == .becomeStream ? 0 : disposition.rawValue) ?? .allow
    }
}
