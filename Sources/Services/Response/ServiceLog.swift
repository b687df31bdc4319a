// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// `Logging` is the name of the package trait and of swift-log's module.
#if Logging
import Logging
#endif

/// Logs the requests and responses of services, for development.
///
/// Debug builds only: in others, none of it is compiled and nothing is logged. URLs, header fields, and JSON and text bodies are redacted
/// (``/CurlewHTTP/Redaction``), control characters escaped, and bodies truncated to 1000 characters. Without a handler, nothing is logged;
/// with the package trait `Logging`, messages without a handler go to swift-log instead, as `debug` messages of the logger
/// `curlew.services`.
public enum ServiceLog {
    /// Receives a message. Called in the task that runs the request, concurrently for several requests.
    public typealias Handler = @Sendable (_ message: String) -> Void

    private struct State {
        var handler: Handler?
        var isSilent = false
    }

    private static let state = Lock(State())

    /// Sets the handler of messages, replacing the previous one; `nil` removes it.
    public static func setHandler(_ handler: Handler?) {
        state.withLock { $0.handler = handler }
    }

    /// Silences all messages, or restores them.
    public static func silence(_ isSilent: Bool) {
        state.withLock { $0.isSilent = isSilent }
    }

    /// Logs a message, which is built only if there is a handler.
    static func log(_ message: () -> String) {
        #if DEBUG
        guard let handler = state.withLock({ $0.isSilent ? nil : $0.handler ?? loggingHandler }) else { return }
        handler(message())
        #endif
    }
}

// MARK: - Messages

extension ServiceLog {
    static func request(_ urlRequest: URLRequest, _ body: any HTTPBody) {
        log { lines("Scheduled \(line(urlRequest))", HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:]), body.description) }
    }

    static func response(_ urlRequest: URLRequest, _ status: Int, _ headers: HTTPHeaders, _ data: Data) {
        log { lines("Response \(status) to \(line(urlRequest))", headers, BodyText.describe(data)) }
    }

    static func stream(_ urlRequest: URLRequest) {
        log { lines("Opening \(line(urlRequest))", HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:]), "<stream>") }
    }

    static func failure(_ urlRequest: URLRequest?, _ error: ServiceError) {
        log { error.request == nil ? "Failed \(urlRequest.map { line($0) } ?? "to build a request"): \(error)" : "Failed \(error)" }
    }

    private static func line(_ urlRequest: URLRequest) -> String {
        "\(urlRequest.httpMethod ?? "GET") \((urlRequest.url?.absoluteString ?? "").redactedURL)"
    }

    private static func lines(_ title: String, _ headers: HTTPHeaders, _ body: String) -> String {
        ([title] + (headers.isEmpty ? [] : [headers.description]) + [body]).joined(separator: "\n")
    }
}

// MARK: - swift-log

#if Logging
extension ServiceLog {
    private static let logger = Logger(label: "curlew.services")

    /// The handler of messages when none is set.
    static var loggingHandler: Handler? { handler(of: logger) }

    static func handler(of logger: Logger) -> Handler {
        { message in logger.debug("\(message)") }
    }
}
#else
extension ServiceLog {
    /// The handler of messages when none is set: none without the trait.
    static var loggingHandler: Handler? { nil }
}
#endif
