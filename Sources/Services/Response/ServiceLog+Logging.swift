// SPDX-License-Identifier: Apache-2.0

// `Logging` is the name of the package trait and of swift-log's module.
#if Logging
import Logging

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
