// SPDX-License-Identifier: Apache-2.0

/// What a library has to do to be measured, written as its users write it.
public protocol BenchClient: Sendable {
    /// Sets the library up for the requests of the command line.
    init(_ options: Options) throws

    /// One small request with `await`; the bytes of its body.
    func get(_ url: String) async throws -> Int

    /// One small request with a closure that runs on a queue.
    func get(_ url: String, handler: @escaping @Sendable (Result<Int, any Error>) -> Void)

    /// One small request into an object, or an array of them; how many there are.
    func decode(_ url: String) async throws -> Int

    /// The same from the bytes alone.
    func decode(_ bytes: [UInt8]) throws -> Int

    /// One large body into a file.
    func download(_ url: String, to path: String) async throws

    /// One large body from a file.
    func upload(_ path: String, to url: String) async throws

    /// Where the tasks that make requests run; `nil` for Swift's own threads.
    var executor: (any TaskExecutor)? { get }

    /// Lets go of what the library asks to be let go of.
    func shutdown() async throws
}

extension BenchClient {
    /// Ends with an error: the library has no such way.
    public func get(_ url: String, handler: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        handler(.failure(BenchFailure("no closures here")))
    }

    /// Fails: the library brings no decoder.
    public func decode(_ bytes: [UInt8]) throws -> Int { throw BenchFailure("no decoder here") }

    /// Swift's own threads.
    public var executor: (any TaskExecutor)? { nil }

    /// Does nothing.
    public func shutdown() async throws {}
}

/// Why a measurement is not one.
public struct BenchFailure: Error, CustomStringConvertible {
    /// A sentence for who measures.
    public let description: String

    /// Says why.
    public init(_ description: String) { self.description = description }
}
