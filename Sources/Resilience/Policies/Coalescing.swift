// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Makes one transfer of equal requests that are in flight at the same time.
///
/// ```swift
/// configuration.use(Resilience(coalescing: Coalescing()))
/// ```
///
/// Requests are equal if method, URL, all header fields, credentials and cookies included, cache policy and timeouts are, and if they have no
/// body. Only `GET` and `HEAD` requests whose body is received whole count. A request joins until the response's head was received. Each has
/// its own cancellation, suspension and deadline: the transfer is cancelled with the last of them.
///
/// Each request gets the whole response, `Set-Cookie` included. A program that sends requests of several users without credentials, and hands
/// the cookies of their responses on, has to leave those requests out.
public struct Coalescing: Sendable {
    /// The policy's name, which events have; empty by default.
    public var name = ""
    /// Whether a request takes part; by default all that can.
    public var includes: @Sendable (PolicyRequest) -> Bool = { _ in true } {
        didSet { isSelective = true }
    }
    /// Whether `includes` was set.
    private(set) var isSelective = false
    /// The most bytes that are kept for requests that are slower than the transfer; it pauses for them above that. 1 MiB by default.
    public var bufferSize = 1 << 20

    /// Creates a policy.
    public init() {}

    /// Creates a policy for some requests.
    ///
    /// - Parameter includes: whether a request takes part. Called on the thread that sends the request: must not block.
    public init(where includes: @escaping @Sendable (PolicyRequest) -> Bool) {
        self.includes = includes
        isSelective = true
    }
}
