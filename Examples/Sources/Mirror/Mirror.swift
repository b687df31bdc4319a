// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

/// A file of the site.
struct Entry: Codable, Sendable {
    let path: String
    let size: Int
}

/// Keeps a folder the same as what a site lists: files are complete or absent, and interrupted ones resume.
struct Mirror: Sendable {
    let site: String
    let folder: URL
    let manager: SessionManager

    init(site: String, folder: URL) {
        self.site = site
        self.folder = folder
        var configuration = SessionConfiguration()
        configuration.maximumConnectionsPerHost = 4  // downloads at a time; the others wait
        manager = SessionManager(
            configuration: configuration, interceptor: RetryPolicy(retryLimit: 8, exponentialBackoffScale: 0.02))
    }

    /// Downloads what is new or has changed, removes what is no longer listed, and returns the number of files that came.
    func update(progress: @escaping @Sendable (String) -> Void) async throws -> Int {
        let entries = try await manager.request("\(site)/index.json").validate().serializingDecodable([Entry].self).value
        let changed = try await withThrowingTaskGroup(of: Bool.self) { group in
            for entry in entries { group.addTask { try await fetch(entry, progress) } }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        let listed = Set(entries.map { ($0.path as NSString).lastPathComponent })
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where !name.hasPrefix(".") && !listed.contains(name) {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
            progress("\(name) is gone")
        }
        return changed
    }

    /// Returns whether the file came, rather than was unchanged.
    private func fetch(_ entry: Entry, _ progress: @Sendable (String) -> Void) async throws -> Bool {
        // The last part of the path only: a site must not choose where files are written.
        let name = (entry.path as NSString).lastPathComponent
        guard !name.hasPrefix("."), !name.isEmpty else { return false }
        let request = manager.download(
            "\(site)\(entry.path)", to: folder.appendingPathComponent(name), options: [.resumePreviousDownload, .removePreviousFile]
        )
        .validate()
        _ = try await request.serializingURL().value
        guard !request.isFileUnchanged else { return false }
        progress("\(name): \(entry.size) bytes, after \(request.retryCount) retries")
        return true
    }
}
