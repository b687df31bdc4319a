// SPDX-License-Identifier: Apache-2.0

/// Carries a context of the caller, such as a task-local value, to the code that is called for its requests elsewhere.
///
/// Swift has no way to capture all task-local values, so each carrier captures one:
///
/// ```swift
/// struct TenantCarrier: ContextCarrier {
///     func capture() -> String? { Tenant.current }
///     func restore<Value>(_ tenant: String, around body: () throws -> Value) rethrows -> Value {
///         try Tenant.$current.withValue(tenant, operation: body)
///     }
/// }
/// configuration.contextCarriers.append(TenantCarrier())
/// ```
///
/// Set in ``SessionConfiguration/contextCarriers``. A request's context is captured once, when it is created, on the thread of that call,
/// and restored around each call of an adapter, retrier, validation, event monitor or decision for that request, on any thread.
public protocol ContextCarrier: Sendable {
    /// What is carried.
    associatedtype Context: Sendable

    /// Returns the context of the caller; `nil` if there is none, and then nothing is restored. Must not block.
    func capture() -> Context?

    /// Calls `body` with the context restored, once, and returns its result.
    func restore<Value>(_ context: Context, around body: () throws -> Value) rethrows -> Value
}

/// The contexts of a request's caller.
struct CapturedContext: Sendable {
    private let contexts: [any RestorableContext]

    /// `nil` if the caller has none.
    init?(_ carriers: [any ContextCarrier]) {
        contexts = carriers.compactMap { Self.capture($0) }
        if contexts.isEmpty { return nil }
    }

    private static func capture<Carrier: ContextCarrier>(_ carrier: Carrier) -> (any RestorableContext)? {
        carrier.capture().map { Restorable(carrier: carrier, context: $0) }
    }

    /// Returns what the first carrier of that type has captured; `nil` if there is none.
    func context<Carrier: ContextCarrier>(of carrier: Carrier.Type) -> Carrier.Context? {
        for context in contexts {
            if let context = context as? Restorable<Carrier> { return context.context }
        }
        return nil
    }

    /// Calls `body` in the contexts, the first carrier's outermost.
    func run(_ body: () -> Void) {
        run(contexts[...], body)
    }

    private func run(_ rest: ArraySlice<any RestorableContext>, _ body: () -> Void) {
        guard let context = rest.first else { return body() }
        context.run { run(rest.dropFirst(), body) }
    }

    private struct Restorable<Carrier: ContextCarrier>: RestorableContext {
        let carrier: Carrier
        let context: Carrier.Context

        func run(_ body: () -> Void) {
            carrier.restore(context, around: body)
        }
    }
}

/// A context with its carrier.
private protocol RestorableContext: Sendable {
    func run(_ body: () -> Void)
}
