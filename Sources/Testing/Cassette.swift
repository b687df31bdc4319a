// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback
import CurlewTransport
import Dispatch

/// Recorded exchanges: a directory with a readable JSON file for each, and its bodies beside it.
///
/// ```
/// Cassettes/users/0001-GET-users-7.json             request and response, without bodies
/// Cassettes/users/0001-GET-users-7.response.json    the response's body, decoded
/// ```
///
/// Everything is redacted before it is written, and what is asked of it before it is compared. Files may be edited, removed and checked in;
/// those of other names are ignored. Only the user may read the files, and a directory that is created. Thread-safe; one object for a
/// directory at a time.
public final class Cassette: Sendable {
    private struct State {
        var exchanges: [StoredExchange] = []
        var lastNumber = 0
        var failure: (any Error)?
    }

    /// The directory; `nil` for a cassette in memory.
    public let directory: URL?
    /// What is left out.
    public let redaction: CassetteRedaction
    private let state = Lock(State())
    private let queue = DispatchQueue(label: "curlew.cassette")

    /// Opens a cassette, and reads what is recorded.
    ///
    /// - Parameters:
    ///   - directory: its directory, which is created with the first exchange that is recorded.
    ///   - redaction: what is left out.
    /// - Throws: ``CassetteError`` for a file that is not one of a cassette, is a symbolic link, or can't be read.
    public init(directory: URL, redaction: CassetteRedaction = CassetteRedaction()) throws {
        self.directory = directory
        self.redaction = redaction
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        for name in names.sorted() {
            guard let number = Self.number(of: name) else { continue }
            do {
                let file = try JSONDecoder().decode(ExchangeFile.self, from: PrivateFile.read(directory.appendingPathComponent(name).path))
                let exchange = try file.exchange { body in
                    // A cassette from elsewhere must not read other files, also not by symbolic links.
                    guard body.isFileName else { throw CassetteError("has a body outside of the directory") }
                    return try PrivateFile.read(directory.appendingPathComponent(body).path)
                }
                state.withLock { state in
                    state.exchanges.append(exchange)
                    state.lastNumber = max(state.lastNumber, number)
                }
            } catch {
                throw CassetteError("\(name): \(error)")
            }
        }
    }

    /// Creates a cassette in memory.
    public init(_ exchanges: [StoredExchange], redaction: CassetteRedaction = CassetteRedaction()) {
        directory = nil
        self.redaction = redaction
        state.withLock { $0.exchanges = exchanges.map { $0.redacted(by: redaction) } }
    }

    /// The exchanges, in the order in which they were recorded.
    public var exchanges: [StoredExchange] { state.withLock { $0.exchanges } }

    /// Adds an exchange, and writes it, soon, after redacting it. ``flush()`` waits for that.
    public func add(_ exchange: StoredExchange) {
        let redacted = exchange.redacted(by: redaction)
        let number = state.withLock { state in
            state.exchanges.append(redacted)
            state.lastNumber += 1
            return state.lastNumber
        }
        guard let directory else { return }
        queue.async {
            do {
                try Self.write(redacted, number, to: directory)
            } catch {
                self.fail(error)
            }
        }
    }

    /// Notes why an exchange is not recorded; the first reason counts.
    func fail(_ error: any Error) {
        state.withLock { if $0.failure == nil { $0.failure = error } }
    }

    /// Returns when everything added so far is written.
    ///
    /// - Throws: the first error of writing, or a ``CassetteError`` for an exchange with a body that is too large.
    public func flush() async throws {
        await withTrackedContinuation { continuation in queue.async { continuation.resume() } }
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Removes all exchanges, with their files.
    public func removeAll() throws {
        state.withLock { state in
            state.exchanges = []
            state.lastNumber = 0
        }
        guard let directory else { return }
        try queue.sync {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [] where Self.isOwn(name) {
                try FileManager.default.removeItem(at: directory.appendingPathComponent(name))
            }
        }
    }

    // MARK: Files

    private static func write(_ exchange: StoredExchange, _ number: Int, to directory: URL) throws {
        try PrivateFile.makeDirectory(directory.path)
        let digits = String(number)
        let stem = String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "-" + name(of: exchange)
        func write(_ body: Data, _ kind: String, _ type: String?) throws -> String? {
            guard !body.isEmpty else { return nil }
            let name = "\(stem).\(kind).\(fileExtension(of: type))"
            try PrivateFile.replace(directory.appendingPathComponent(name).path, with: body)
            return name
        }
        let request = try write(exchange.body, "request", exchange.contentType)
        var response: String?
        if case .response(_, let headers, let body, _) = exchange.outcome {
            response = try write(body, "response", headers["Content-Type"])
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let file = ExchangeFile(exchange, requestBody: request, responseBody: response)
        // Last: an exchange without its file does not count.
        try PrivateFile.replace(directory.appendingPathComponent(stem + ".json").path, with: encoder.encode(file))
    }

    /// A name for people, of letters, digits and hyphens: method and path.
    private static func name(of exchange: StoredExchange) -> String {
        let parts = URLParts(exchange.url)
        let text = "\(exchange.method)-\(parts.segments.joined(separator: "-"))"
        let plain = text.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }
        return String(String(plain).splitScalars(separator: "-").joined(separator: "-").prefix(60))
    }

    private static func fileExtension(of type: String?) -> String {
        let type = type?.mediaType.lowercased() ?? ""
        if type.hasByteSuffix("json") { return "json" }
        if type.hasByteSuffix("xml") { return "xml" }
        if type == "text/html" { return "html" }
        return type.hasBytePrefix("text/") || type == "application/x-www-form-urlencoded" ? "txt" : "bin"
    }

    /// The number in the name of an exchange's file; `nil` for other files.
    private static func number(of name: String) -> Int? {
        guard isOwn(name), name.hasByteSuffix(".json"), name.splitScalars(separator: ".").count == 2 else { return nil }
        return Int(name.prefixScalars { $0 != "-" })
    }

    private static func isOwn(_ name: String) -> Bool {
        let digits = name.unicodeScalars.prefix { $0 != "-" }
        return digits.count >= 4 && digits.count < name.unicodeScalars.count && digits.allSatisfy { ("0"..."9").contains($0) }
    }
}

/// A cassette can't be read, or an exchange not be recorded.
public struct CassetteError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// Which file or exchange, and why.
    public let description: String

    /// The same text.
    public var errorDescription: String? { description }

    init(_ description: String) {
        self.description = description
    }
}
