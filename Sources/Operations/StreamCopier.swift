// SPDX-License-Identifier: Apache-2.0

/// Copies a stream to a file, on the calling thread.
struct StreamCopier: @unchecked Sendable {  // the stream is used on that thread only
    private let stream: InputStream
    private let file: URL

    init(_ stream: InputStream, to file: URL) {
        self.stream = stream
        self.file = file
    }

    /// Copies the stream; returns the error, or `nil` when the file is complete. An existing file is kept until then.
    func run() -> (any Error)? {
        stream.open()
        defer { stream.close() }
        do {
            let part = try PartFile.make(for: file)
            do {
                try copy(to: part)
                try part.close()
                try part.move(to: file, replacing: true, creatingDirectories: false)
            } catch {
                part.discard()
                throw error
            }
            return nil
        } catch {
            return error
        }
    }

    private func copy(to part: PartFile) throws {
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while case let count = stream.read(&piece, maxLength: piece.count), count != 0 {
            guard count > 0 else { throw CocoaError(.fileReadUnknown) }
            try piece.withUnsafeBytes { try part.write(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
    }
}
