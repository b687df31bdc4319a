// SPDX-License-Identifier: Apache-2.0

/// The command line, the same for every program that is measured, the C floor's and Go's included.
public struct Options: Sendable {
    /// What is measured.
    public enum Command: String, Sendable {
        /// COUNT requests of URL, so many in flight.
        case get
        /// COUNT requests of a server that answers late, all at once: what a waiting request takes in memory.
        case wait
        /// A file by its bytes alone, COUNT times, with no request.
        case decode
        /// One large body into a file.
        case download
        /// One large body from a file.
        case upload
    }

    /// How much a small request asks of the library.
    public enum Style: String, Sendable {
        /// The body, with `await` and nothing else.
        case data
        /// An adapter that needs a `URLRequest`, and a validation.
        case adapter
        /// An adapter that only sets headers, and a validation.
        case headers
        /// An adapter, a validation and a closure on a queue.
        case handlers
        /// The body, by a request with options of its own.
        case options
        /// The body, by a request with a deadline.
        case deadline
        /// The body, with an asynchronous adapter of headers that does not suspend.
        case awaited
        /// Metrics and logs at `info`.
        case observed
        /// Tracing, sampled out.
        case traced
        /// The body, of another URL each time.
        case urls
        /// A policy of CurlewResilience that has nothing to do; of coalescing, with another URL each time.
        case breaker, limiter, concurrency, budget, hedging, coalescing
        /// A rate limit with permits that are leased from a store.
        case leased
        /// The body, by a `URLRequest`, and the response as an `HTTPURLResponse`.
        case urlrequest
        /// The same by a `URLSession` that the library has.
        case urlsession
        /// The same, the body byte by byte.
        case bytes
        /// A validation and an object of the body.
        case object
        /// A validation and an array of objects of the body.
        case list
    }

    static let usage = """
        usage: PROGRAM get URL COUNT INFLIGHT
                        [--style data|adapter|headers|handlers|options|deadline|awaited|observed|traced|object|list]
                        [--style urls|breaker|limiter|concurrency|budget|hedging|coalescing|leased|urlrequest|urlsession|bytes]
                       [--decoder foundation|fast] [--executor] [--h2] [--multiplex] [--cold] [--ca FILE] [--beside WAITING SLOW-URL]
                       [--loops N]
               PROGRAM wait URL COUNT
               PROGRAM decode FILE COUNT --style object|list [--decoder foundation|fast]
               PROGRAM download URL FILE
               PROGRAM upload URL FILE
        """

    /// What is measured.
    public private(set) var command = Command.get
    /// The address of the requests, or the file to decode.
    public private(set) var target = ""
    /// How many requests, or decodings.
    public private(set) var count = 1
    /// The requests that run at the same time.
    public private(set) var inFlight = 1
    /// The file of a download or an upload.
    public private(set) var file = ""
    /// How much a request asks of the library.
    public private(set) var style = Style.data
    /// Whether the library's own decoder takes the place of Foundation's.
    public private(set) var usesFastDecoder = false
    /// Whether the tasks that await run where the library does its work.
    public private(set) var usesExecutor = false
    /// Whether HTTP/2 is offered.
    public private(set) var usesHTTP2 = false
    /// Whether requests share an HTTP/2 connection although the library would not let them by default.
    public private(set) var multiplexes = false
    /// Whether each request makes a connection of its own.
    public private(set) var isCold = false
    /// The number of event loops.
    public private(set) var loops = 1
    /// The certificate to trust.
    public private(set) var caFile: String?
    /// How many requests wait for an answer while the others are measured, and the address of the server that keeps them waiting.
    public private(set) var beside: (waiting: Int, url: String)?

    /// `nil` when the arguments, without the program's name, make no command.
    init?(_ arguments: [String]) {
        var positional: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument.hasPrefix("--") {
                guard readOption(argument, &rest) else { return nil }
            } else {
                positional.append(argument)
            }
        }
        guard positional.count >= 3, let command = Command(rawValue: positional[0]) else { return nil }
        self.command = command
        target = positional[1]
        guard readOperands(Array(positional.dropFirst(2))) else { return nil }
    }
}

extension Options {
    /// Whether the option is one, and has the values that it needs.
    private mutating func readOption(_ name: String, _ rest: inout ArraySlice<String>) -> Bool {
        switch name {
        case "--h2": usesHTTP2 = true
        case "--multiplex": multiplexes = true
        case "--cold": isCold = true
        case "--executor": usesExecutor = true
        case "--ca":
            caFile = rest.popFirst()
            return caFile != nil
        case "--loops":
            guard let loops = rest.popFirst().flatMap(Int.init), loops > 0 else { return false }
            self.loops = loops
        case "--style":
            guard let style = rest.popFirst().flatMap(Style.init(rawValue:)) else { return false }
            self.style = style
        case "--decoder":
            guard let decoder = rest.popFirst(), ["foundation", "fast"].contains(decoder) else { return false }
            usesFastDecoder = decoder == "fast"
        case "--beside":
            guard let waiting = rest.popFirst().flatMap(Int.init), let url = rest.popFirst(), waiting >= 0 else { return false }
            beside = (waiting, url)
        default: return false
        }
        return true
    }

    private mutating func readOperands(_ operands: [String]) -> Bool {
        switch command {
        case .download, .upload:
            file = operands[0]
            return operands.count == 1
        case .get:
            guard operands.count == 2, let inFlight = Int(operands[1]), inFlight > 0 else { return false }
            self.inFlight = inFlight
        case .wait, .decode:
            guard operands.count == 1 else { return false }
        }
        guard let count = Int(operands[0]), count > 0 else { return false }
        self.count = count
        if command == .wait { inFlight = count }
        return true
    }
}
