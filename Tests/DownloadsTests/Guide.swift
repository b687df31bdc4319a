// SPDX-License-Identifier: Apache-2.0
// snippet: segments
import Curlew
import CurlewDownloads

func fetchImage(_ url: String, to file: URL, with manager: SessionManager) async throws -> Int64 {
    var options = SegmentedDownload.Options()
    options.segments = 8
    options.rateLimit = DownloadRateLimit(bytesPerSecond: 20_000_000)
    let download = manager.segmentedDownload(url, to: file, options: options)
    let result = try await download.run { progress in
        print("\(progress.completed) of \(progress.total ?? 0) bytes, \(progress.connections) connections")
    }
    return result.received
}
// end

// snippet: digest
func fetchRelease(_ url: String, sha256: Data, to file: URL, with manager: SessionManager) async throws -> Bool {
    var options = SegmentedDownload.Options()
    options.segments = 1
    options.sha256 = sha256  // 32 bytes
    do {
        _ = try await manager.segmentedDownload(url, to: file, options: options).run()
        return true
    } catch SegmentedDownloadError.digestMismatch {
        return false  // not what was published: there is nothing at `file`
    }
}
// end
