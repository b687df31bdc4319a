// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Foundation

// snippet: webhook
/// A webhook as a producer gives it, and as the dead letters have it.
struct Webhook: Codable, Hashable, Sendable {
    /// Chosen by the producer for an event. Receivers get it with each attempt, and recognize by it what they have processed.
    let id: String
    let url: String
    let body: String
    /// Why it was given up; `nil` while it is to be delivered.
    var failure: String?
}

/// A webhook that is to be delivered.
struct Pending: Codable, Hashable, Sendable {
    let webhook: Webhook
    let accepted: Date
    /// The attempts that have failed.
    var attempts = 0
    /// When the next attempt is due.
    var due: Date
}
// end

/// What is to be delivered, in a file that survives the process.
///
/// Each change is a line at the file's end, a digest and a record in JSON, and is on the disk before the call returns. A last line that is
/// torn, because the process or the machine stopped while it was written, is removed: its call had not returned. When most of the file is
/// history, what is left is written to a new file, which then takes its place.
///
/// After an error of the disk all calls throw it, and ``pending`` ends with it: the next process reads what the disk has.
actor Journal {
    enum Failure: Error, Equatable {
        /// Another process has the journal.
        case isInUse
        /// A line that is not the last one does not have its digest: the file was changed by something else.
        case isDamaged(offset: Int)
        case isClosed
    }

    private struct Record: Codable {
        /// A webhook that was accepted, or whose attempt has failed.
        var pending: Pending?
        /// The identifier of one that was delivered or given up.
        var ended: String?
    }

    /// What is pending, with the bytes of each in the file.
    private struct Contents {
        private(set) var entries: [String: (pending: Pending, bytes: Int)] = [:]
        private(set) var bytes = 0

        mutating func apply(_ record: Record, _ count: Int) {
            guard let id = record.ended ?? record.pending?.webhook.id else { return }
            let old = entries.removeValue(forKey: id)
            bytes -= old?.bytes ?? 0
            guard let pending = record.pending else { return }
            entries[id] = (pending, count)
            bytes += count
        }
    }

    /// The webhooks that are to be delivered: those in the file, and then those that are accepted. For one reader.
    nonisolated let pending: AsyncThrowingStream<Pending, any Error>
    private let added: AsyncThrowingStream<Pending, any Error>.Continuation
    private let url: URL
    private let limit: Int
    private let lock: FileHandle
    private var file: FileHandle
    private var length: Int
    private var contents: Contents
    private var failure: (any Error)?

    /// Opens the journal of a file, which is created if there is none.
    ///
    /// - Parameter limit: the bytes of what is pending from which on no more is accepted; 64 MiB by default. The file has at most twice as many,
    ///   and one more MiB.
    init(at url: URL, limit: Int = 64 << 20) throws {
        let lock = try Self.open(url.appendingPathExtension("lock"))
        guard flock(lock.fileDescriptor, LOCK_EX | LOCK_NB) == 0 else { throw Failure.isInUse }
        let file = try Self.open(url)
        let data = try file.readToEnd() ?? Data()
        var (contents, length) = (Contents(), 0)
        while let end = data[length...].firstIndex(of: UInt8(ascii: "\n")) {
            guard let record = Self.record(of: data[length..<end]) else { break }
            contents.apply(record, end + 1 - length)
            length = end + 1
        }
        if let end = data[length...].firstIndex(of: UInt8(ascii: "\n")), end + 1 < data.count { throw Failure.isDamaged(offset: length) }
        try file.truncate(atOffset: UInt64(length))
        try file.synchronize()
        try Self.synchronizeFolder(of: url)
        (self.url, self.limit, self.lock, self.file, self.length, self.contents) = (url, limit, lock, file, length, contents)
        (pending, added) = AsyncThrowingStream.makeStream()
        for entry in contents.entries.values.sorted(by: { $0.pending.due < $1.pending.due }) { added.yield(entry.pending) }
    }

    /// The number of webhooks that are to be delivered.
    var count: Int { contents.entries.count }

    /// Accepts a webhook, unless one with its identifier is pending, which it then is the same as. Returns `false` if there is no room for it
    /// until others have been delivered.
    func accept(_ webhook: Webhook, at date: Date) throws -> Bool {
        guard contents.entries[webhook.id] == nil else { return true }
        guard contents.bytes < limit else { return false }
        let pending = Pending(webhook: webhook, accepted: date, due: date)
        try append(Record(pending: pending))
        added.yield(pending)
        return true
    }

    /// Lets another one open the file.
    func close() throws {
        failure = Failure.isClosed
        try lock.close()
    }

    /// No more webhooks will be accepted: ``pending`` ends.
    func finish() { added.finish() }

    /// Notes an attempt that has failed, and when the next one is due.
    func postpone(_ pending: Pending) throws { try append(Record(pending: pending)) }

    /// Removes a webhook that was delivered.
    func remove(_ pending: Pending) throws { try append(Record(ended: pending.webhook.id)) }

    /// Moves a webhook to the dead letters, a file of lines that can be given to the program again.
    func bury(_ pending: Pending, because reason: String) throws {
        var webhook = pending.webhook
        webhook.failure = reason
        // First there and then gone from here: a process that is killed between the two leaves it in both.
        let letters = try Self.open(url.appendingPathExtension("dead"))
        // The line before may be torn.
        try letters.write(contentsOf: Data("\n".utf8) + JSONEncoder().encode(webhook) + Data("\n".utf8))
        try letters.synchronize()
        try remove(pending)
    }

    // MARK: The file

    private func append(_ record: Record) throws {
        if let failure { throw failure }
        let line = try Self.line(of: record)
        do {
            try file.write(contentsOf: line)
            try file.synchronize()
            contents.apply(record, line.count)
            length += line.count
            if length > 2 * contents.bytes + 1 << 20 { try compact() }
        } catch {
            failure = error
            added.finish(throwing: error)
            throw error
        }
    }

    private func compact() throws {
        let new = url.appendingPathExtension("new")
        let file = try Self.open(new, O_TRUNC)
        let lines = try contents.entries.values.map { try Self.line(of: Record(pending: $0.pending)) }
        try file.write(contentsOf: Data(lines.joined()))
        try file.synchronize()
        guard unsafe rename(new.path, url.path) == 0 else { throw Self.systemError }
        try Self.synchronizeFolder(of: url)
        self.file = file
        length = contents.bytes
    }

    private static func line(of record: Record) throws -> Data {
        let json = try JSONEncoder().encode(record)
        return Data("\(digest(of: json)) ".utf8) + json + Data("\n".utf8)
    }

    /// `nil` for a line that is torn.
    private static func record(of line: Data) -> Record? {
        let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 1)
        guard parts.count == 2, parts[0].elementsEqual(digest(of: parts[1]).utf8) else { return nil }
        return try? JSONDecoder().decode(Record.self, from: parts[1])
    }

    /// 64 bits of FNV-1a, which recognizes blocks that have not reached the disk.
    private static func digest(of data: Data) -> String {
        String(data.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }, radix: 16)
    }

    /// Opens a file to append to it; one that is created can be read by this user only.
    private static func open(_ url: URL, _ flags: Int32 = 0) throws -> FileHandle {
        let descriptor = unsafe Foundation.open(url.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0o600)
        guard descriptor >= 0 else { throw systemError }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Without it, a file that was created or renamed could be gone after a loss of power.
    private static func synchronizeFolder(of url: URL) throws {
        let descriptor = unsafe Foundation.open(url.deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw systemError }
        try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).synchronize()
    }

    private static var systemError: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

    // MARK: Where it runs

    private nonisolated let thread = BlockingExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe thread.asUnownedSerialExecutor() }

    /// Runs the journal on a queue: the threads of tasks must not wait for a disk.
    private final class BlockingExecutor: SerialExecutor {
        private let queue = DispatchQueue(label: "journal")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
    }
}
