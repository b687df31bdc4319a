// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The client side of a kit's drills, during which the kit disrupts network and disk.
enum Drills {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Downloads to a file, resuming from an earlier process's partial data.
    static func download(_ url: String, to file: URL) async throws {
        let options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile]
        let manager = makeManager()
        defer { manager.invalidateAndCancel() }
        _ = try await manager.download(url, to: file, options: options).validate().serializingURL().value
    }

    /// Uploads a file.
    static func upload(_ file: URL, to url: String) async throws {
        let manager = makeManager()
        defer { manager.invalidateAndCancel() }
        _ = try await manager.upload(file, to: url).validate().serializingData().value
    }

    /// Sends many requests, up to `width` at a time; each response must match its request.
    static func many(_ count: Int, _ width: Int, base: String) async throws {
        let manager = makeManager()
        defer { manager.invalidateAndCancel() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...max(count, 1) {
                if number > width { try await group.next() }
                group.addTask {
                    let text = try await manager.request("\(base)/n\(number)").validate().serializingString().value
                    guard text == "/n\(number)" else { throw Failure(description: "/n\(number) brought \(text)") }
                }
            }
            try await group.waitForAll()
        }
    }

    private static func makeManager() -> SessionManager {
        var configuration = Driver.makeConfiguration()
        // A drill that disrupts the network must not wait long.
        configuration.idleTimeout = .seconds(6)
        configuration.connectTimeout = .seconds(4)
        return SessionManager(configuration: configuration)
    }
}
