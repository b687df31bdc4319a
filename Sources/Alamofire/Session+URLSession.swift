// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import Dispatch

// What programs call on `manager.session`, which in Alamofire is a `URLSession`.

extension Session {
    /// Calls `completionHandler` on the session's queue with the tasks of the session's requests that have not completed.
    @preconcurrency public func getAllTasks(completionHandler: @escaping @Sendable ([SessionTask]) -> Void) {
        queue.async { completionHandler(self.openTasks.map(\.task)) }
    }

    /// Calls `completionHandler` on the session's queue with the tasks that have not completed: those of data requests, of uploads and of
    /// downloads.
    @preconcurrency public func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([SessionTask], [SessionTask], [SessionTask]) -> Void
    ) {
        queue.async {
            var (data, uploads, downloads): ([SessionTask], [SessionTask], [SessionTask]) = ([], [], [])
            for (request, task) in self.openTasks {
                switch request {
                case is UploadRequest: uploads.append(task)
                case is DataRequest: data.append(task)
                case is DownloadRequest: downloads.append(task)
                default: break
                }
            }
            completionHandler(data, uploads, downloads)
        }
    }

    private var openTasks: [(request: Request, task: SessionTask)] {
        (delegate?.orderedRequests ?? []).compactMap { request in
            request.task.flatMap { $0.state == .completed ? nil : (request, $0) }
        }
    }

    /// Removes what the configuration's storages have (cookies, cached responses, credentials), flushes the session, and calls
    /// `completionHandler` on its queue. A storage that is shared is empty for other sessions, too.
    ///
    /// What a file does not let be removed stays in it.
    @preconcurrency public func reset(completionHandler: @escaping @Sendable () -> Void) {
        queue.async { [configuration] in
            try? configuration.cookies?.removeAll()
            for cookie in configuration.cookieStorage?.cookies ?? [] { configuration.cookieStorage?.deleteCookie(cookie) }
            try? configuration.cache?.removeAll()
            configuration.urlCache?.removeAllCachedResponses()
            let credentials = configuration.credentialStorage
            for (space, users) in credentials?.allCredentials ?? [:] {
                for credential in users.values { credentials?.remove(credential, for: space) }
            }
            self.flush(completionHandler: completionHandler)
        }
    }

    /// Closes the session's idle connections, so that later requests open others, and calls `completionHandler` on its queue. The storages
    /// have nothing to be flushed.
    @preconcurrency public func flush(completionHandler: @escaping @Sendable () -> Void) {
        SharedWork.task { [queue, eventLoop] in
            _ = await eventLoop?.closeIdleConnections()
            queue.async(execute: completionHandler)
        }
    }

    /// A queue whose operations run one at a time, on the serial queue of the session's validators, retriers, delegate's closures and
    /// notifications. Suspending it does not suspend those. Not the queue of handlers, which is `.main` by default.
    public var delegateQueue: OperationQueue {
        guard let delegate else { return Self.makeQueue(on: queue) }
        return delegate.withClosures { closures in
            if let queue = closures.values[DelegateQueue.self]?.queue { return queue }
            let made = Self.makeQueue(on: queue)
            closures.values[DelegateQueue.self] = DelegateQueue(queue: made)
            return made
        }
    }

    private static func makeQueue(on queue: DispatchQueue) -> OperationQueue {
        let operations = OperationQueue()
        operations.maxConcurrentOperationCount = 1
        operations.underlyingQueue = queue
        return operations
    }
}

private struct DelegateQueue: Sendable {
    let queue: OperationQueue
}
