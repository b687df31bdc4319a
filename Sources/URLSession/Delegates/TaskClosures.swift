// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// The closures by which tasks take part in their requests: they find the task by its request, so that all tasks of a kind share them.
///
/// The closures of one object share what servers were trusted, so those of a session are its own, and those of a task with a delegate of its
/// own are the task's.
final class TaskClosures: Sendable {
    enum Kind: Hashable {
        /// A task whose body and completion its delegate receives.
        case data
        case download
        /// A task with a completion handler, or one that is awaited.
        case handled
    }

    private let made = Lock<[Kind: RequestClosures]>([:])

    func closures(of kind: Kind) -> RequestClosures {
        made.withLock { made in
            if let closures = made[kind] { return closures }
            let closures = RequestClosures(Self.make(kind))
            made[kind] = closures
            return closures
        }
    }

    static func make(_ kind: Kind) -> SessionClosures {
        var closures = SessionClosures()
        closures.taskWillPerformHTTPRedirection = { session, task, response, proposed, completion in
            guard let task = session.urlSessionTask(of: task) else { return completion(proposed) }
            task.redirect(response, proposed, completion)
        }
        closures.taskDidReceiveChallenge = { session, task, challenge, completion in
            guard let task = session.urlSessionTask(of: task) else { return completion(.performDefaultHandling, nil) }
            task.answer(challenge, completion)
        }
        closures.taskDidReceiveConnectionChallenge = { session, task, challenge, completion in
            guard let task = session.urlSessionTask(of: task) else { return completion(.performDefaultHandling, nil) }
            task.answer(challenge, completion)
        }
        closures.taskNeedNewBodyStream = { session, task, completion in
            guard let task = session.urlSessionTask(of: task) else { return completion(nil) }
            task.renewBody(completion)
        }
        closures.taskDidSendBodyData = { session, task, count, total, expected in
            let owner = session.urlSessionTask(of: task)
            // The rest of a body may be sent after the response for which the delegate has chosen a download.
            (owner?.downloading ?? owner)?.notify { (delegate: any URLSessionTaskDelegate, task) in
                delegate.urlSession(
                    task.session, task: task, didSendBodyData: count, totalBytesSent: total, totalBytesExpectedToSend: expected)
            }
        }
        switch kind {
        case .handled: break
        case .data: addData(to: &closures)
        case .download: addDownload(to: &closures)
        }
        return closures
    }

    private static func addData(to closures: inout SessionClosures) {
        closures.dataTaskDidReceiveResponse = { session, task, response, completion in
            let shown = task.protocolResponse ?? response
            guard let task = session.urlSessionTask(of: task) as? URLSessionDataTask else { return completion(.allow) }
            task.decide(about: shown) { completion(.init($0)) }
        }
        closures.dataTaskWillCacheResponse = { session, task, proposed, completion in
            // As for other downloads, no delegate is asked about the response of one that was a data task.
            guard let task = session.urlSessionTask(of: task) as? URLSessionDataTask, task.downloading == nil else {
                return completion(proposed)
            }
            task.decide(aboutCaching: proposed, completion)
        }
        closures.dataTaskTakesData = { session, task, piece, taken in
            guard let task = session.urlSessionTask(of: task) as? URLSessionDataTask else { return taken() }
            task.take(piece, taken)
        }
        closures.dataTaskDidBecomeDownloadTask = { session, task, _ in
            (session.urlSessionTask(of: task) as? URLSessionDataTask)?.becomeDownload()
        }
        closures.downloadTaskDidFinishDownloadingToURL = { session, task, url in
            session.urlSessionTask(of: task)?.keep(url)
        }
        addDownload(to: &closures)
    }

    private static func addDownload(to closures: inout SessionClosures) {
        closures.downloadTaskDidWriteData = { session, task, count, total, expected in
            session.urlSessionTask(of: task)?.downloading?.wrote(count, total, expected)
        }
        closures.downloadTaskDidResumeAtOffset = { session, task, offset, expected in
            session.urlSessionTask(of: task)?.downloading?.notify { (delegate: any URLSessionDownloadDelegate, task) in
                guard let task = task as? URLSessionDownloadTask else { return }
                delegate.urlSession(task.session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
            }
        }
    }
}

extension Session {
    /// The task of a request, until that has finished.
    fileprivate func urlSessionTask(of task: SessionTask) -> URLSessionTask? { delegate?.owner(of: task) as? URLSessionTask }
}

extension URLSessionTask: RequestOwner {
    package var closures: RequestClosures {
        let (known, own) = values.withLock { ($0.closures, $0.delegate) }
        if let known { return known }
        let made = own == nil ? session.closures.closures(of: kind) : RequestClosures(TaskClosures.make(kind))
        return values.withLock { values in
            let closures = values.closures ?? made
            values.closures = closures
            return closures
        }
    }

    private var kind: TaskClosures.Kind {
        guard case .delegate = completion else { return .handled }
        return self is URLSessionDownloadTask ? .download : .data
    }

    /// The download task that the task is, or that has taken its place.
    fileprivate var downloading: URLSessionDownloadTask? {
        self as? URLSessionDownloadTask ?? values.withLock { $0.successor }
    }

    // MARK: Decisions

    fileprivate func redirect(_ response: HTTPURLResponse, _ made: URLRequest, _ completion: @escaping @Sendable (URLRequest?) -> Void) {
        // Without the body of a stream, which is not visible: it follows by itself.
        let proposed = offered(made)
        ask(.redirection) { (delegate: any URLSessionTaskDelegate, task, answer: @escaping Answer<URLRequest?>) in
            delegate.urlSession(
                task.session, task: task, willPerformHTTPRedirection: response, newRequest: proposed, completionHandler: answer)
        } answered: { [self] answer in
            guard let answer else { return completion(made) }
            guard let chosen = answer else { return completion(nil) }
            noteChosen(chosen)
            completion(chosen.isSent(like: proposed) ? made : chosen)
        }
    }

    fileprivate func renewBody(_ completion: @escaping @Sendable (InputStream?) -> Void) {
        ask(.bodyStream) { (delegate: any URLSessionTaskDelegate, task, answer: @escaping Answer<Shown<InputStream?>>) in
            delegate.urlSession(task.session, task: task) { answer(Shown($0)) }
        } answered: {
            completion($0?.value)
        }
    }

    /// Keeps the file of a data task that has become a download, which is removed when this returns.
    fileprivate func keep(_ file: URL) {
        let kept = file.deletingLastPathComponent().appendingPathComponent("CurlewDownload_\(UUID().uuidString).tmp")
        if rename(file.path, kept.path) == 0 { values.withLock { $0.file = kept } }
    }
}
