// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request, batch or chain: can be started and stopped, and has accessories.
public protocol RunnableRequest: AnyObject, Sendable {
    /// A number for the caller's use, by which requests and groups are found and cancelled; 0 by default.
    var tag: Int { get set }
    /// The accessories, in the order in which they are notified; `nil` until one is added.
    var requestAccessories: [any RequestAccessory]? { get set }
    /// Appends an accessory; has a default.
    func addAccessory(_ accessory: any RequestAccessory)
    /// Starts it.
    func start()
    /// Stops it; no callback follows.
    func stop()
}

/// Observes the start and end of requests, batches and chains without affecting them: for an activity indicator, a log or a counter.
///
/// A run notifies the accessories that it was started with, of all three events or of none, in order; each event reaches all of them before
/// the next one. They are not notified of a response from a cache, of ``RequestAgent/addRequest(_:)``, or of a stop without a start.
///
/// One accessory may be added to several of them. All methods have defaults: implement those for ``RunnableRequest``, or those for `Any`,
/// as in YTKNetwork, which are called if the others are not implemented. A method that only nearly matches a requirement's signature is a
/// different method and is never called; see ``RequestDelegate``.
public protocol RequestAccessory: AnyObject, Sendable {
    /// Called before the start, on the thread that called `start`. Optional.
    func requestWillStart(_ request: any RunnableRequest)
    /// Called after completion, before the callbacks, on the callback queue; after a stop, on the thread that called `stop`, or, if
    /// accessories were being notified of the start, on that thread. Optional.
    func requestWillStop(_ request: any RunnableRequest)
    /// Called after the callbacks, on the same queue or thread as `requestWillStop(_:)`. Optional.
    func requestDidStop(_ request: any RunnableRequest)

    /// The same with YTKNetwork's signature. Optional; not called if the one for ``RunnableRequest`` is implemented.
    func requestWillStart(_ request: Any)
    /// The same with YTKNetwork's signature. Optional; not called if the one for ``RunnableRequest`` is implemented.
    func requestWillStop(_ request: Any)
    /// The same with YTKNetwork's signature. Optional; not called if the one for ``RunnableRequest`` is implemented.
    func requestDidStop(_ request: Any)
}

extension RunnableRequest {
    /// Appends an accessory by reading and then writing ``requestAccessories``: not thread-safe.
    public func addAccessory(_ accessory: any RequestAccessory) {
        requestAccessories = (requestAccessories ?? []) + [accessory]
    }
}

/// An accessory made of closures, each of which runs once and is then released.
public final class RequestEventAccessory: RequestAccessory {
    /// Called with the request, batch or chain that starts or ends.
    public typealias Block = @Sendable (any RunnableRequest) -> Void

    private struct Blocks {
        var willStart: Block?
        var willStop: Block?
        var didStop: Block?
    }

    private let blocks: Lock<Blocks>

    /// Creates an accessory; events whose block is `nil` are ignored.
    public init(willStart: Block? = nil, willStop: Block? = nil, didStop: Block? = nil) {
        blocks = Lock(Blocks(willStart: willStart, willStop: willStop, didStop: didStop))
    }

    /// Calls the `willStart` block.
    public func requestWillStart(_ request: any RunnableRequest) { take { $0.willStart.take() }?(request) }
    /// Calls the `willStop` block.
    public func requestWillStop(_ request: any RunnableRequest) { take { $0.willStop.take() }?(request) }
    /// Calls the `didStop` block.
    public func requestDidStop(_ request: any RunnableRequest) { take { $0.didStop.take() }?(request) }

    private func take(_ block: (inout Blocks) -> Block?) -> Block? {
        blocks.withLock { block(&$0) }
    }
}
