// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTransport
import Dispatch

extension SessionConfiguration {
    /// The clock of the delays before retries, of the deadlines of requests and of the grace period of a shutdown; `nil`, the default, for
    /// the system's. Timeouts of transfers always count in real time.
    ///
    /// Needs `import CurlewTesting`.
    public var virtualClock: VirtualClock? {
        get { clock as? VirtualClock }
        set { clock = newValue }
    }
}

extension SessionManager {
    /// Creates a manager on a mock transport, and on its clock, if it has one.
    ///
    /// Needs `import CurlewTesting`.
    ///
    /// Handlers are called on a queue of the manager, as the main queue is that of the test runner; set another one by `change`.
    ///
    /// - Parameters:
    ///   - mock: the transport.
    ///   - interceptor: adapts the requests and decides about their retries; `nil`, the default, for none.
    ///   - change: changes the configuration.
    public convenience init(
        mock: MockTransport, interceptor: (any RequestInterceptor)? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "curlew.mock.callbacks")
        configuration.virtualClock = mock.clock
        change(&configuration)
        self.init(configuration: configuration, interceptor: interceptor, transport: mock)
    }

    /// Creates a manager on a mock transport with a response for all requests: `SessionManager(mock: .json(user))`.
    ///
    /// Needs `import CurlewTesting`.
    ///
    /// - Parameters:
    ///   - response: the response, or the failure.
    ///   - more: the responses to the following requests, of which the last one repeats.
    ///   - clock: the clock of delays; `nil`, the default, for the system's.
    ///   - interceptor: adapts the requests and decides about their retries; `nil`, the default, for none.
    ///   - change: changes the configuration.
    public convenience init(
        mock response: MockResponse, _ more: MockResponse..., clock: VirtualClock? = nil, interceptor: (any RequestInterceptor)? = nil,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        let transport = MockTransport(clock: clock)
        transport.stubs.add(MockStub(RequestPattern(), .sequence([response] + more)))
        self.init(mock: transport, interceptor: interceptor, change)
    }
}
