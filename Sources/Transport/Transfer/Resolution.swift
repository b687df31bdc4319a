// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// Asking the session's resolver: before a transfer or a stream is handed to libcurl, off the event loop's thread.

/// A question to the resolver, and its answer. For the event loop's thread only.
struct Resolution {
    /// The identity of a question: an answer to an earlier one of the same transfer is dropped.
    final class Question: Sendable {
        let id: Int
        let target: RouteTarget

        init(id: Int, target: RouteTarget) {
            self.id = id
            self.target = target
        }
    }

    let question: Question
    let startedAt: Nanoseconds
    let task: Task<Void, Never>
    /// The addresses; `nil` while the resolver runs.
    private(set) var addresses: [String]?
    /// How long the resolver took.
    private(set) var duration: Nanoseconds = 0

    /// Asks the resolver; its answer is posted to the loop.
    init(
        _ question: Question, to resolver: HostResolver, at time: Nanoseconds,
        _ post: @escaping @Sendable (Result<[String], any Error>) -> Void
    ) {
        self.question = question
        startedAt = time
        // Detached, so that it neither inherits nor blocks anything of the loop.
        task = Task.detached {
            do {
                post(.success(try await resolver.addresses(of: question.target.host, port: question.target.port)))
            } catch {
                post(.failure(error))
            }
        }
    }

    /// Records the answer; throws a sentence that says why it is unusable.
    mutating func answered(_ result: Result<[String], any Error>, at time: Nanoseconds) throws(UnusableAnswer) {
        duration = time - min(startedAt, time)
        let host = question.target.host
        switch result {
        case .failure(let error): throw UnusableAnswer(message: "The session's resolver failed for \(host): \(error)")
        case .success(let addresses):
            guard !addresses.isEmpty else { throw UnusableAnswer(message: "The session's resolver has no address for \(host)") }
            if let other = addresses.first(where: { NetworkAddress($0) == nil || $0.unicodeScalars.contains("%") }) {
                throw UnusableAnswer(
                    message: "The session's resolver returned \(other.debugDescription) for \(host), which is not an address")
            }
            self.addresses = addresses
        }
    }
}

/// Why the resolver's answer can't be used.
struct UnusableAnswer: Error {
    let message: String
}

extension Transfer {
    /// Whether the resolver has been asked and has not answered.
    var isResolving: Bool { resolution.map { $0.addresses == nil } ?? false }

    /// Forgets the question and its answer; a running resolver is cancelled.
    func endResolution() {
        resolution?.task.cancel()
        resolution = nil
    }

    /// The connect timeout in libcurl's unit, without the time that the resolver took; shorter for an alternative.
    var connectTimeoutMilliseconds: Int {
        let timeout =
            exchange.alternative == nil
            ? request.connectTimeoutMilliseconds
            : min(request.connectTimeoutMilliseconds, AlternativeServices.connectTimeoutMilliseconds)
        guard let resolution else { return timeout }
        return max(1, timeout - Int(resolution.duration / 1_000_000))
    }
}

extension EventLoopThread {
    /// Whether a transfer can be handed to libcurl. If not, it has failed, or waits for the resolver.
    func isReady(_ transfer: Transfer) -> Bool {
        if let error = transfer.request.validationError {
            complete(transfer, error: error)
            return false
        }
        guard transfer.request.prepared.dependsOnURL else { return true }
        if let (kind, message) = transfer.guardRefusal(of: transfer.request.url, transfer.request.prepared.options) {
            fail(transfer, kind, message)
            return false
        }
        guard let box = transfer.request.prepared.options.reachBox, box.value.hasRoutes else { return true }
        let decision = RouteDecision(
            to: transfer.request.url, proxy: transfer.proxy, options: box.value, resolved: transfer.resolution?.addresses)
        switch decision {
        case .usual:
            transfer.route = nil
            transfer.chooseAlternative()
        case .route(let route): transfer.route = route
        case .ask(let resolver, let target):
            transfer.state.setUp(reached: .resolving)
            transfer.resolution = ask(resolver, about: target, for: transfer.number)
            armTimer(transfer)
            return false
        }
        return true
    }

    /// Asks a resolver about a host on behalf of a transfer or a stream.
    func ask(_ resolver: HostResolver, about target: RouteTarget, for id: Int) -> Resolution {
        let question = Resolution.Question(id: id, target: target)
        return Resolution(question, to: resolver, at: now) { [mailbox] in mailbox.post(.resolved(question, $0)) }
    }

    /// A resolver has answered.
    func resolved(_ question: Resolution.Question, _ result: Result<[String], any Error>) {
        // Those that have completed or restarted meanwhile no longer wait.
        if let transfer = transfers[question.id], transfer.resolution?.question === question {
            do throws(UnusableAnswer) {
                try transfer.resolution?.answered(result, at: now)
                run(transfer)
            } catch {
                complete(transfer, error: CurlewError.transferFailed(transfer.failure(.nameResolution, error.message)))
            }
        } else if let stream = streams[question.id], stream.resolution?.question === question {
            if let error = stream.resolved(result) { complete(stream, error: error) }
        }
    }
}
