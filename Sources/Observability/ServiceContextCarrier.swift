// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewHTTP
public import Logging
public import Tracing

/// Carries the `ServiceContext` of the caller, with its trace, to the code that is called for its requests.
///
/// ``TracingInstrument`` brings one. Add it to `SessionConfiguration.contextCarriers` for adapters, retriers and validations that read
/// `ServiceContext.current` without tracing.
public struct ServiceContextCarrier: ContextCarrier {
    /// Creates a carrier.
    public init() {}

    /// Returns the current context.
    public func capture() -> ServiceContext? { ServiceContext.current }

    /// Restores a context as the current one.
    public func restore<Value>(_ context: ServiceContext, around body: () throws -> Value) rethrows -> Value {
        try ServiceContext.withValue(context, operation: body)
    }
}

/// Carries the task-local `Logger` and the `ServiceContext` of the caller, from which the logger's metadata provider may take the trace.
///
/// ``LoggingInstrument`` brings one.
public struct LoggingContextCarrier: ContextCarrier {
    /// The context of a caller.
    public struct Context: Sendable {
        /// The task-local logger.
        public let logger: Logger
        /// The current context; `nil` if there is none.
        public let serviceContext: ServiceContext?
    }

    /// Creates a carrier.
    public init() {}

    /// Returns the current logger and context.
    public func capture() -> Context? { Context(logger: Logger.current, serviceContext: ServiceContext.current) }

    /// Restores logger and context as the current ones.
    public func restore<Value>(_ context: Context, around body: () throws -> Value) rethrows -> Value {
        try ServiceContext.withValue(context.serviceContext) {
            try withLogger(context.logger) { _ in try body() }
        }
    }
}
#endif
