// SPDX-License-Identifier: Apache-2.0

// `Logging` is the trait, and the module of swift-log.
#if Logging
import Logging

extension ServiceLog {
    private static let logger = Logger(label: "curlew.services")

    /// Where messages go that nobody has taken.
    static var loggingHandler: Handler? { handler(of: logger) }

    static func handler(of logger: Logger) -> Handler {
        { message in logger.debug("\(message)") }
    }
}
#else
extension ServiceLog {
    /// Where messages go that nobody has taken: nowhere.
    static var loggingHandler: Handler? { nil }
}
#endif
