// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Records the exchanges of sessions as an HTTP Archive (HAR 1.2), which browsers and many tools open.
///
/// ```swift
/// let recorder = try HARRecorder(file: URL(fileURLWithPath: "/tmp/session.har"))
/// configuration.eventMonitors.append(recorder)
/// ```
///
/// Each exchange is an entry, once it has completed: redirects, authenticated retries, retries, and responses from the cache have their own.
/// An entry has method, URL, header fields, phases, sizes on the wire, the server's address and the connection (the local port). Bodies are
/// not recorded. WebSockets and raw streams have none.
///
/// The file is complete after each entry, so that it can be read while the program runs, and after it ended at any time but in the middle of
/// a write; an entry for which there is no space leaves it as it was. Thread-safe; one recorder may serve several sessions.
public final class HARRecorder: EventMonitor {
    private enum Target {
        case memory
        /// The open file, and the offset of the end of the last entry.
        case file(Descriptor, end: Int64)
        case closed
    }

    private struct State {
        var target: Target
        var entries: [Data] = []
        var count = 0
        var error: (any Error)?
    }

    private static let end = Data("\n]}}\n".utf8)

    private let redacts: Bool
    private let state: Lock<State>

    /// Creates a recorder in memory; ``data`` returns the archive.
    ///
    /// - Parameter redacting: whether secrets are redacted (`Redaction`); `true` by default.
    public init(redacting: Bool = true) {
        redacts = redacting
        state = Lock(State(target: .memory))
    }

    /// Creates a recorder that writes to a new file, which takes the place of one that exists. Only the user may read it. The file is locked
    /// (`flock`) until ``close()``.
    ///
    /// A symbolic link is neither followed nor replaced, because another user may have put it there.
    ///
    /// - Parameters:
    ///   - file: the URL of the file.
    ///   - redacting: whether secrets are redacted (`Redaction`); `true` by default.
    /// - Throws: `POSIXError` if the file can't be created, is a symbolic link (`ELOOP`), or is another recorder's (`EWOULDBLOCK`).
    public init(file: URL, redacting: Bool = true) throws {
        redacts = redacting
        let beginning = try Self.beginning()
        let file = try Self.makeFile(at: file.path, beginning + Self.end)
        state = Lock(State(target: .file(file, end: Int64(beginning.count))))
    }

    /// Creates a recorder that writes to an open, empty file, which it closes.
    package init(descriptor: Descriptor, redacting: Bool = true) throws {
        redacts = redacting
        let beginning = try Self.beginning()
        try Self.write(beginning + Self.end, to: descriptor, at: 0)
        state = Lock(State(target: .file(descriptor, end: Int64(beginning.count))))
    }

    /// Creates a locked file with contents, and gives it a path. A file there keeps its contents for those that have it open.
    private static func makeFile(at path: String, _ contents: Data) throws -> Descriptor {
        // Created empty if there is none, so that of several recorders one gets the lock.
        guard let old = PrivateFile.open(path, O_WRONLY | O_CREAT), old.lock() else { throw error(errno, path) }
        defer { try? old.close() }
        guard let locked = old.regularStatus else { throw error(EINVAL, path) }
        var named = stat()
        // Another recorder had the lock, and has replaced the file.
        guard lstat(path, &named) == 0, locked.st_ino == named.st_ino, locked.st_dev == named.st_dev else { throw error(EWOULDBLOCK, path) }
        guard let (file, new) = PrivateFile.create(beside: path) else { throw error(errno, path) }
        do {
            guard file.lock() else { throw error(errno, path) }
            try write(contents, to: file, at: 0)
            guard rename(new, path) == 0 else { throw error(errno, path) }
            return file
        } catch {
            unlink(new)
            throw error
        }
    }

    private static func error(_ code: Int32, _ path: String) -> POSIXError {
        let reason = code == ELOOP ? "it is a symbolic link, which is not followed" : String(cString: strerror(code))
        return POSIXError(
            POSIXErrorCode(rawValue: code) ?? .EIO,
            userInfo: ["NSFilePath": path, "NSLocalizedDescription": "The archive \"\(path)\" can't be created: \(reason)"])
    }

    /// Closes the file; later exchanges are not recorded. Further calls do nothing.
    public func close() {
        state.withLock { if case .file = $0.target { $0.target = .closed } }
    }

    /// The number of entries so far.
    public var count: Int { state.withLock { $0.count } }

    /// Why an entry could not be written, such as that the disk is full; the first reason counts, and later entries are not recorded. `nil`
    /// if all were.
    public var error: (any Error)? { state.withLock { $0.error } }

    /// The archive of a recorder in memory, as JSON; `nil` for one that writes to a file.
    public var data: Data? {
        guard let beginning = try? Self.beginning() else { return nil }
        return state.withLock { state in
            guard case .memory = state.target else { return nil }
            return beginning + state.entries.joined(separator: Data(",\n".utf8)) + Self.end
        }
    }

    // MARK: EventMonitor

    /// Completed exchanges.
    public var monitoredEvents: MonitoredEvents { .exchanges }

    /// Records an exchange.
    public func request(_ request: Request, didCompleteExchange exchange: OutgoingExchange, with completion: ExchangeCompletion) {
        record(HAREntry(exchange, completion, redacts: redacts))
    }

    private func record(_ entry: HAREntry) {
        state.withLock { state in
            guard state.error == nil else { return }
            do {
                let bytes = try Self.encoder.encode(entry)
                switch state.target {
                case .memory: state.entries.append(bytes)
                case .closed: return
                case .file(let file, let end):
                    let separator = Data((state.count == 0 ? "" : ",\n").utf8)
                    // In one call, over the end of the archive: a program killed at any time leaves a complete one.
                    do {
                        try Self.write(separator + bytes + Self.end, to: file, at: end)
                    } catch {
                        // The end of the archive returns to where it was, where it needs no space.
                        try Self.write(Self.end, to: file, at: end)
                        file.truncate(to: end + Int64(Self.end.count))
                        throw error
                    }
                    state.target = .file(file, end: end + Int64(separator.count + bytes.count))
                }
                state.count += 1
            } catch {
                state.error = error
            }
        }
    }

    // MARK: The file

    private static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    /// The archive up to its first entry.
    private static func beginning() throws -> Data {
        let creator = try encoder.encode(HARArchive.Creator())
        return Data(#"{"log":{"version":"1.2","creator":"#.utf8) + creator + Data(#","entries":["#.utf8) + Data("\n".utf8)
    }

    private static func write(_ bytes: Data, to file: Descriptor, at offset: Int64) throws {
        do throws(SystemError) { try file.write(bytes, at: offset) } catch {
            throw POSIXError(POSIXErrorCode(rawValue: error.code) ?? .EIO)
        }
    }
}
