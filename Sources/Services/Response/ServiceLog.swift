// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Tells what services send and get, while a program is being made.
///
/// Of a debug build only: in others, nothing of it is compiled, and nothing is told. URLs, header fields and bodies that are JSON or text
/// are redacted (``/CurlewHTTP/Redaction``), control characters escaped, bodies cut after 1000 characters. Nobody is told before there is a handler; with the package's trait `Logging`, messages without one go to
/// swift-log, as `debug` messages of the logger `curlew.services`.
public enum ServiceLog {
    /// Is told. Called in the task that runs the request, several at once.
    public typealias Handler = @Sendable (_ message: String) -> Void

    private struct State {
        var handler: Handler?
        var isSilent = false
    }

    private static let state = Lock(State())

    /// Has messages go to a handler, in place of the one before; `nil` for none.
    public static func setHandler(_ handler: Handler?) {
        state.withLock { $0.handler = handler }
    }

    /// Silences everything, or no longer.
    public static func silence(_ isSilent: Bool) {
        state.withLock { $0.isSilent = isSilent }
    }

    /// Tells a message, which is made only if anybody is told.
    static func tell(_ message: () -> String) {
        #if DEBUG
        guard let handler = state.withLock({ $0.isSilent ? nil : $0.handler ?? loggingHandler }) else { return }
        handler(message())
        #endif
    }
}

// MARK: - Messages

extension ServiceLog {
    static func request(_ urlRequest: URLRequest, _ body: any HTTPBody) {
        tell { lines("Scheduled \(line(urlRequest))", HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:]), body.description) }
    }

    static func response(_ urlRequest: URLRequest, _ status: Int, _ headers: HTTPHeaders, _ data: Data) {
        tell { lines("Response \(status) to \(line(urlRequest))", headers, BodyText.describe(data)) }
    }

    static func stream(_ urlRequest: URLRequest) {
        tell { lines("Opening \(line(urlRequest))", HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:]), "<stream>") }
    }

    static func failure(_ urlRequest: URLRequest?, _ error: ServiceError) {
        tell { "Failed \(urlRequest.map { line($0) } ?? "before there was a request"): \(error)" }
    }

    private static func line(_ urlRequest: URLRequest) -> String {
        "\(urlRequest.httpMethod ?? "GET") \((urlRequest.url?.absoluteString ?? "").redactedURL)"
    }

    private static func lines(_ title: String, _ headers: HTTPHeaders, _ body: String) -> String {
        ([title] + (headers.isEmpty ? [] : [headers.description]) + [body]).joined(separator: "\n")
    }
}
