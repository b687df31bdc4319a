// SPDX-License-Identifier: Apache-2.0

/// Writes a stream to a file, on the thread on which it runs.
struct StreamCopier: @unchecked Sendable {  // the stream is used on that thread alone
    private let stream: InputStream
    private let file: URL

    init(_ stream: InputStream, to file: URL) {
        self.stream = stream
        self.file = file
    }

    /// Why it failed; `nil` when the file is complete. A file that is not complete is removed.
    func run() -> (any Error)? {
        stream.open()
        defer { stream.close() }
        do {
            guard FileManager.default.createFile(atPath: file.path, contents: nil) else { throw URLError(.cannotCreateFile) }
            let handle = try FileHandle(forWritingTo: file)
            defer { try? handle.close() }
            var piece = [UInt8](repeating: 0, count: 64 * 1024)
            while case let count = stream.read(&piece, maxLength: piece.count), count != 0 {
                guard count > 0 else { throw CocoaError(.fileReadUnknown) }
                try handle.write(contentsOf: piece[..<count])
            }
            return nil
        } catch {
            try? FileManager.default.removeItem(at: file)
            return error
        }
    }
}
