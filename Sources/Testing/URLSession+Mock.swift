// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTransport
import CurlewURLSession

extension CurlewURLSession.URLSession {
    /// Creates a session on a mock transport, and on its clock, if it has one.
    ///
    /// Needs `import CurlewTesting` beside `import CurlewURLSession`.
    ///
    /// - Parameters:
    ///   - mock: the transport.
    ///   - configuration: the settings; copied. An `ephemeral` one by default.
    ///   - delegate: receives events; retained until the session is invalidated. `nil`, the default, for none.
    ///   - delegateQueue: where delegates and completion handlers are called; `nil`, the default, for a new serial queue.
    public convenience init(
        mock: MockTransport, configuration: CurlewURLSession.URLSessionConfiguration = .ephemeral,
        delegate: (any CurlewURLSession.URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) {
        let own = configuration.copy() as? CurlewURLSession.URLSessionConfiguration ?? configuration
        if let clock = mock.clock { own.curlew.virtualClock = clock }
        self.init(configuration: own, delegate: delegate, queue: delegateQueue, transport: mock)
    }

    /// Creates a session on a mock transport with a response for all requests: `URLSession(mock: .json(user))`.
    ///
    /// Needs `import CurlewTesting` beside `import CurlewURLSession`.
    ///
    /// - Parameters:
    ///   - response: the response, or the failure.
    ///   - more: the responses to the following requests, of which the last one repeats.
    ///   - configuration: the settings; copied. An `ephemeral` one by default.
    ///   - delegate: receives events; retained until the session is invalidated. `nil`, the default, for none.
    ///   - delegateQueue: where delegates and completion handlers are called; `nil`, the default, for a new serial queue.
    public convenience init(
        mock response: MockResponse, _ more: MockResponse..., configuration: CurlewURLSession.URLSessionConfiguration = .ephemeral,
        delegate: (any CurlewURLSession.URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) {
        let transport = MockTransport()
        transport.stubs.add(MockStub(RequestPattern(), .sequence([response] + more)))
        self.init(mock: transport, configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
    }

    /// Creates a session on a transport that records (``RecordingTransport``), replays (``ReplayTransport``), or is the program's own.
    ///
    /// ```swift
    /// let cassette = try Cassette(directory: directory)
    /// let session = URLSession(transport: try ReplayTransport(cassette, mode: .once))
    /// ```
    ///
    /// Needs `import CurlewTesting` beside `import CurlewURLSession`.
    ///
    /// - Parameters:
    ///   - transport: the transport, which is shut down with the session.
    ///   - configuration: the settings; copied. An `ephemeral` one by default.
    ///   - delegate: receives events; retained until the session is invalidated. `nil`, the default, for none.
    ///   - delegateQueue: where delegates and completion handlers are called; `nil`, the default, for a new serial queue.
    public convenience init(
        transport: any Transport, configuration: CurlewURLSession.URLSessionConfiguration = .ephemeral,
        delegate: (any CurlewURLSession.URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) {
        self.init(configuration: configuration, delegate: delegate, queue: delegateQueue, transport: transport)
    }
}
