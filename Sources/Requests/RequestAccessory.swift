// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What can be started and stopped, and has accessories: a request, a batch, a chain.
public protocol RunnableRequest: AnyObject, Sendable {
    /// A number of the user's, by which things are found and cancelled; 0 by default.
    var tag: Int { get set }
    /// The accessories, in the order in which they are told; `nil` as long as none was added.
    var requestAccessories: [any RequestAccessory]? { get set }
    /// Adds an accessory behind those that are there; has a default.
    func addAccessory(_ accessory: any RequestAccessory)
    /// Begins.
    func start()
    /// Ends it; no callback follows.
    func stop()
}

/// Is told when requests, batches and chains begin and end, without a part in them: for an activity indicator, a log, a count.
///
/// The same accessory may be given to several. All methods have defaults that do nothing; as to those that nearly have the signature of
/// one, see ``RequestDelegate``.
public protocol RequestAccessory: AnyObject, Sendable {
    /// It is going to be started; on the thread that called `start`. Optional.
    func requestWillStart(_ request: any RunnableRequest)
    /// It is over, and its callbacks are going to run; on the callback queue. When it is stopped: on the thread that stops it.
    /// Optional.
    func requestWillStop(_ request: any RunnableRequest)
    /// It is over, and its callbacks have run; where ``requestWillStop(_:)`` was called. Optional.
    func requestDidStop(_ request: any RunnableRequest)
}

extension RunnableRequest {
    /// Adds an accessory behind those that are there, in two steps: not for several threads at once.
    public func addAccessory(_ accessory: any RequestAccessory) {
        requestAccessories = (requestAccessories ?? []) + [accessory]
    }
}

extension WaitableRequest {
    /// Those that a subclass names, and those that were added.
    private var accessories: [any RequestAccessory] {
        let named = requestAccessories ?? []
        return named + addedAccessories.filter { added in !named.contains { $0 === added } }
    }

    /// Tells the accessories that it is going to be started.
    func toggleAccessoriesWillStart() {
        for accessory in accessories { accessory.requestWillStart(self) }
    }

    /// Tells the accessories that it is over, before callbacks run.
    func toggleAccessoriesWillStop() {
        for accessory in accessories { accessory.requestWillStop(self) }
    }

    /// Tells the accessories that it is over, after callbacks have run.
    func toggleAccessoriesDidStop() {
        for accessory in accessories { accessory.requestDidStop(self) }
    }
}

/// An accessory of closures, each of which runs once and is let go of then.
public final class RequestEventAccessory: RequestAccessory {
    /// Is given what begins or ends.
    public typealias Block = @Sendable (any RunnableRequest) -> Void

    private struct Blocks {
        var willStart: Block?
        var willStop: Block?
        var didStop: Block?
    }

    private let blocks: Lock<Blocks>

    /// Makes an accessory; what is `nil` is left out.
    public init(willStart: Block? = nil, willStop: Block? = nil, didStop: Block? = nil) {
        blocks = Lock(Blocks(willStart: willStart, willStop: willStop, didStop: didStop))
    }

    /// Calls the first block.
    public func requestWillStart(_ request: any RunnableRequest) { take { $0.willStart.take() }?(request) }
    /// Calls the second block.
    public func requestWillStop(_ request: any RunnableRequest) { take { $0.willStop.take() }?(request) }
    /// Calls the third block.
    public func requestDidStop(_ request: any RunnableRequest) { take { $0.didStop.take() }?(request) }

    private func take(_ block: (inout Blocks) -> Block?) -> Block? {
        blocks.withLock { block(&$0) }
    }
}
