// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import Foundation

/// A file of the site, as its `index.json` lists it.
struct Entry: Codable, Sendable {
    /// The path below the site, beginning with a slash.
    let path: String
    /// The SHA-256 digest in hexadecimal digits; `nil` if the site names none.
    var sha256: String?
}

/// An index that can't be mirrored.
enum MirrorError: Error, CustomStringConvertible {
    /// Two files would have the same name in the folder.
    case sameName(String)
    /// The digest of a file is not 64 hexadecimal digits.
    case invalidDigest(path: String)

    var description: String {
        switch self {
        case .sameName(let name): "the index lists two files with the name \(name)"
        case .invalidDigest(let path): "the index has no valid SHA-256 digest of \(path)"
        }
    }
}

/// Makes a folder the same as what a site lists. Files are complete, verified and under their names, or absent; interrupted ones resume.
struct Mirror: Sendable {
    let site: String
    let folder: URL
    /// The number of files that are downloaded at a time, each over several connections.
    var filesAtATime = 2
    /// What counts for each file: the number and the smallest size of its segments, the rate limit.
    var options: SegmentedDownload.Options
    private let manager: SessionManager

    /// - Parameter bytesPerSecond: a limit for all files together; `nil` for none.
    init(site: String, folder: URL, bytesPerSecond: Int64? = nil) {
        self.site = site
        self.folder = folder
        var configuration = SessionConfiguration()
        configuration.maximumConnectionsPerHost = 8
        // For the index. Segments have retries of their own.
        manager = SessionManager(configuration: configuration, interceptor: RetryPolicy())
        options = SegmentedDownload.Options()
        options.replacesFile = true
        options.rateLimit = bytesPerSecond.map { DownloadRateLimit(bytesPerSecond: $0) }
    }

    /// Downloads what is new or has changed, removes what is no longer listed, and returns the number of files that were received.
    func update(progress: @escaping @Sendable (String) -> Void) async throws -> Int {
        let entries = try await manager.request("\(site)/index.json").validate().serializingDecodable([Entry].self).value
        let files = try named(entries)
        let received = try await download(files, progress)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where files[name] == nil && !name.hasPrefix(".") {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
            progress("\(name): removed")
        }
        return received
    }

    /// The entries by the names of their files. A site must not choose where files are written, so only the last part of a path counts.
    private func named(_ entries: [Entry]) throws -> [String: Entry] {
        try entries.reduce(into: [:]) { files, entry in
            let name = SuggestedFileName.name(url: try "\(site)\(entry.path)".asURL())
            guard files.updateValue(entry, forKey: name) == nil else { throw MirrorError.sameName(name) }
        }
    }

    private func download(_ files: [String: Entry], _ progress: @escaping @Sendable (String) -> Void) async throws -> Int {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            var (waiting, received) = (files.sorted { $0.key < $1.key }[...], 0)
            for _ in 0..<filesAtATime {
                if let next = waiting.popFirst() { group.addTask { try await fetch(next.value, as: next.key, progress) } }
            }
            while let isNew = try await group.next() {
                received += isNew ? 1 : 0
                if let next = waiting.popFirst() { group.addTask { try await fetch(next.value, as: next.key, progress) } }
            }
            return received
        }
    }

    /// Returns whether the file was received, rather than unchanged.
    private func fetch(_ entry: Entry, as name: String, _ progress: @Sendable (String) -> Void) async throws -> Bool {
        var options = options
        options.sha256 = try entry.sha256.map { digits in
            guard let digest = Data(hexadecimal: digits), digest.count == 32 else { throw MirrorError.invalidDigest(path: entry.path) }
            return digest
        }
        let download = manager.segmentedDownload("\(site)\(entry.path)", to: folder.appendingPathComponent(name), options: options)
        let result = try await download.run()
        guard !result.isUnchanged else { return false }
        let verified = result.verified.isEmpty ? "" : ", verified by \(result.verified.joined(separator: ", "))"
        progress("\(name): \(result.length) bytes, \(result.resumed) of them from an earlier run\(verified)")
        return true
    }
}

extension Data {
    /// Creates data from hexadecimal digits; `nil` if there is anything else.
    init?(hexadecimal digits: String) {
        let values = digits.compactMap(\.hexDigitValue)
        guard values.count == digits.count, values.count.isMultiple(of: 2) else { return nil }
        self.init(stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] * 16 + values[$0 + 1]) })
    }
}
