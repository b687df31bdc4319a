// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

// What a stream task does for its calls, one step after the other.

extension URLSessionStreamTask {
    // MARK: Calls

    func add(_ call: StreamPipe.Call) {
        pipe.withLock { $0.add(call) }
        serve()
    }

    /// Adds a read; returns its number.
    @discardableResult
    func read(_ least: Int, _ most: Int, _ timeout: TimeInterval, _ done: @escaping @Sendable (StreamPipe.ReadResult) -> Void) -> Int {
        let number = pipe.withLock { $0.nextNumber() }
        guard most >= max(least, 1), least >= 0 else {
            done(.failure(URLError.of(.unknown, self, describedBy: "The lengths of a read are not in order: \(least), \(most)")))
            return number
        }
        let timer = timer(timeout) { [weak self] in
            guard let self, let read = pipe.withLock({ $0.takeRead(number) }) else { return }
            read.done(.failure(URLError.of(.timedOut, self)))
            serve()
        }
        add(.read(StreamPipe.Read(number: number, least: max(least, 1), most: most, timer: timer, done: done)))
        return number
    }

    /// Removes a read; `false` if it was served.
    func withdrawRead(_ number: Int) -> Bool {
        guard let read = pipe.withLock({ $0.takeRead(number) }) else { return false }
        read.timer?.cancel()
        serve()
        return true
    }

    func write(_ data: Data, _ timeout: TimeInterval, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let number = pipe.withLock { $0.nextNumber() }
        let timer = timer(timeout) { [weak self] in
            guard let self, let write = pipe.withLock({ $0.takeWrite(number) }) else { return }
            write.done(.failure(URLError.of(.timedOut, self)))
            serve()
        }
        add(.write(StreamPipe.Write(number: number, data: data, timer: timer, done: done)))
    }

    /// Calls a closure after some seconds; `nil` without a timeout.
    private func timer(_ timeout: TimeInterval, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never>? {
        guard timeout > 0 else { return nil }
        return Task {
            guard (try? await Task.sleep(for: .seconds(min(timeout, 1e9)))) != nil else { return }
            body()
        }
    }

    // MARK: Steps

    /// Does what is to be done, on one thread at a time.
    func serve() {
        while true {
            let isRunning = state == .running
            let step = pipe.withLock { pipe -> StreamPipe.Step? in
                guard !pipe.isServing, let step = pipe.nextStep(isRunning: isRunning) else { return nil }
                pipe.isServing = true
                return step
            }
            guard let step else { return }
            perform(step)
            pipe.withLock { $0.isServing = false }
        }
    }

    private func perform(_ step: StreamPipe.Step) {
        switch step {
        case .connect(let isSecure): connect(isSecure: isSecure)
        case .receive(let request): receive(from: request)
        case .stopReceiving(let receiver): receiver.cancel()
        case .deliver(let read, let result):
            read.timer?.cancel()
            read.done(result.mapError { shown($0) })
        case .send(let request, let write):
            request.write(write.data) { [self] result in
                if let write = pipe.withLock({ $0.sent() }) {
                    write.timer?.cancel()
                    write.done(result.mapError { shown($0) })
                }
                serve()
            }
        case .refuse(let write, let error):
            write.timer?.cancel()
            write.done(.failure(shown(error)))
        case .closeRead(let request): request?.closeRead()
        case .reportReadClosed:
            notify { (delegate: any URLSessionStreamDelegate, task) in delegate.urlSession(task.session, readClosedFor: self) }
        case .closeWrite(let request):
            request?.closeWrite()
            notify { (delegate: any URLSessionStreamDelegate, task) in delegate.urlSession(task.session, writeClosedFor: self) }
        case .endBoth(let request): request.cancel()
        case .capture(let request, let rest): capture(request, rest)
        case .end(let result): end(Outcome(error: result.failure.map { shown($0) }))
        }
    }

    private func shown(_ error: any Error) -> any Error { URLError.of(error, self) }

    private func receive(from request: StreamRequest) {
        let receiver = Task { [self] in
            var bytes = request.bytes().makeAsyncIterator()
            let result: Result<Data?, any Error>
            do { result = .success(try await bytes.next()) } catch { result = .failure(error) }
            pipe.withLock { $0.receivedPiece(result) }
            serve()
        }
        pipe.withLock { $0.began(receiver) }
    }

    // MARK: The connection

    private func connect(isSecure: Bool) {
        var options = connectionOptions(of: nil)
        if let owner = connectionOwner { options.ownership = RequestOwnership(owner) }
        let manager = session.curlew
        let request =
            isSecure
            ? manager.stream(withSecureHostName: host, port: port, options: options)
            : manager.stream(withHostName: host, port: port, options: options)
        let state = values.withLock { values in
            values.request = request
            return values.state
        }
        pipe.withLock { $0.connected(request) }
        // What other threads have called in between found no request.
        switch state {
        case .suspended: request.suspend()
        case .canceling, .completed: request.cancel()
        case .running: break
        }
        request.whenFinished { [self] in finish(request.delegate.error.map { .failure($0) } ?? .success(())) }
    }

    /// Fails the task, unless it has completed.
    func fail(_ error: any Error) {
        pipe.withLock { $0.ended(.failure(error)) }
        cancel()
    }

    /// The connection has ended: so does the task, when its calls have.
    func finish(_ result: Result<Void, any Error>) {
        pipe.withLock { $0.ended(result) }
        serve()
    }

    private func capture(_ request: StreamRequest, _ rest: Data) {
        let streams = request.captureStreams(after: rest)
        let shown = Shown(streams)
        values.withLock { values in
            values.hasEnded = true
            values.state = .completed
        }
        session.leave(self) {
            notify { (delegate: any URLSessionStreamDelegate, task) in
                delegate.urlSession(task.session, streamTask: self, didBecome: shown.value.input, outputStream: shown.value.output)
            }
            session.queue.schedule { [self] in values.withLock { $0.delegate = nil } }
        }
    }
}

extension Result where Failure == any Error {
    /// The error; `nil` for a success.
    var failure: (any Error)? { if case .failure(let error) = self { error } else { nil } }
}

/// The place of a read that can be left without losing bytes.
final class ReadPlace: Sendable {
    private enum Stage {
        case outside
        case entering
        case entered(Int)
        case left
    }

    private let task: URLSessionStreamTask
    private let stage = Lock(Stage.outside)

    init(_ task: URLSessionStreamTask) {
        self.task = task
    }

    /// Adds a read; calls `done` once, unless it is left.
    func enter(_ least: Int, _ most: Int, _ timeout: TimeInterval, _ done: @escaping @Sendable (StreamPipe.ReadResult) -> Void) {
        let isWanted = stage.withLock { stage in
            if case .left = stage { return false }
            stage = .entering
            return true
        }
        guard isWanted else { return }
        let number = task.read(least, most, timeout, done)
        let isLeft = stage.withLock { stage in
            if case .left = stage { return true }
            stage = .entered(number)
            return false
        }
        if isLeft, task.withdrawRead(number) { done(.failure(URLError(.cancelled))) }
    }

    /// Removes the read; `false` if `done` is called nevertheless.
    func leave() -> Bool {
        let stage = stage.withLock { stage in
            defer { stage = .left }
            return stage
        }
        switch stage {
        case .outside, .left: return true
        case .entering: return false
        case .entered(let number): return task.withdrawRead(number)
        }
    }
}
