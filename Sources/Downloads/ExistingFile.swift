// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SegmentedDownload {
    /// Finds out whether the file at a destination is what the server has.
    ///
    /// - Parameter isConfirmed: whether the server says that it has this version.
    /// - Throws: `CocoaError` with the code `fileWriteFileExists` if there is another file, which must not be replaced.
    static func unchangedFile(
        at destination: URL, of url: URL, by responder: String, _ options: Options, _ isConfirmed: (FinishedDownload) async throws -> Bool
    ) async throws -> Result? {
        var status = stat()
        guard lstat(destination.path, &status) == 0 else { return nil }
        try PartFile.checkReplaceable(destination)
        func unchanged(_ verified: [String]) -> Result {
            Result(file: destination, length: Int64(status.st_size), received: 0, resumed: 0, isUnchanged: true, verified: verified)
        }
        if let sha256 = options.sha256 {
            if try await onBlockingQueue({ try SegmentFile.check(["sha-256": sha256], at: destination, until: $0) }) == nil {
                return unchanged(["sha-256"])
            }
        } else if let finished = FinishedDownload(of: url, by: responder, at: destination),
            // Where only the length distinguishes versions, a file that may be replaced is replaced.
            finished.isVersioned || !options.replacesFile, try await isConfirmed(finished), finished.isIntact(at: destination)
        {
            return unchanged([])
        }
        guard options.replacesFile else { throw FileError.writing(destination.path, EEXIST) }
        return nil
    }
}
