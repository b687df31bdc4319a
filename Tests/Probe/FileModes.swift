// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The modes of a download's files under a umask, which is the whole process's.
struct FileModes {
    let directory: URL

    private func mode(_ file: URL) -> Int {
        var status = stat()
        return lstat(file.path, &status) == 0 ? Int(status.st_mode & 0o777) : -1
    }

    func report(_ url: String, mask: mode_t) async throws {
        umask(mask)
        var configuration = Probe.makeConfiguration()
        configuration.temporaryDirectory = directory.appendingPathComponent("temporary")
        let manager = SessionManager(configuration: configuration)
        let (placed, known) = (directory.appendingPathComponent("placed"), directory.appendingPathComponent("known"))
        let kept = try await manager.download(url).serializingURL().value
        Probe.report("kept", mode(kept))
        _ = try await manager.download(url) { file, _ in
            Probe.report("temporary", mode(file))
            return (placed, [])
        }.serializingURL().value
        Probe.report("placed", mode(placed))
        _ = try await manager.download(url, to: known).serializingURL().value
        Probe.report("known", mode(known))
        _ = try await manager.download(url, to: known, options: [.removePreviousFile]).serializingURL().value
        Probe.report("replaced", mode(known))
    }
}
