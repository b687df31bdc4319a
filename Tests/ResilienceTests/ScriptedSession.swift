// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import Dispatch

/// A session with policies, whose exchanges are performed by the test, step by step, and whose time passes by the test.
struct ScriptedSession {
    let clock = VirtualClock()
    let transport: ScriptedTransport
    let events = Events()
    let manager: SessionManager

    init(
        _ policies: Resilience, interceptor: (any RequestInterceptor)? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        transport = ScriptedTransport(clock: clock)
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        configuration.virtualClock = clock
        change(&configuration)
        var policies = policies
        policies.observers.append(events)
        configuration.use(policies)
        manager = SessionManager(configuration: configuration, interceptor: interceptor, transport: transport)
    }

    /// The number of exchanges so far.
    var count: Int { transport.started.count }

    /// An exchange by its number from 0, as soon as it is started.
    func exchange(_ index: Int) async -> ScriptedExchange { await transport.started[index] }

    func request(_ path: String = "a", options: RequestOptions? = nil) -> DataRequest {
        manager.request("https://api.example.org/\(path)", options: options)
    }
}

/// Whether a request fails with an error.
func fails(_ request: DataRequest, _ matches: (any Error) -> Bool) async -> Bool {
    do { _ = try await request.validate().serializingData().value } catch { return matches(error) }
    return false
}

func isCancelled(_ error: any Error) -> Bool { if case CurlewError.cancelled = error { true } else { false } }

func isInvalidated(_ error: any Error) -> Bool { if case CurlewError.sessionInvalidated = error { true } else { false } }

func failureKind(_ error: any Error) -> TransferFailure.Kind? {
    if case CurlewError.transferFailed(let failure) = error { failure.kind } else { nil }
}

extension CurlewError {
    static func failure(_ kind: TransferFailure.Kind) -> CurlewError {
        .transferFailed(TransferFailure(kind: kind, url: "https://api.example.org/a", phase: .waiting, message: "It failed"))
    }
}
