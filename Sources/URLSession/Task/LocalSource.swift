// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewURLLoading

/// Why a URL can't be loaded without a network, if no error of a file says it.
struct LocalFailure: Error {
    let code: URLError.Code
}

/// The content of a `data:` or `file:` URL, read in pieces. Used by one thread at a time; a file is closed with the last reference.
final class LocalSource: Sendable {
    private enum Content {
        case bytes(Data)
        case file(Descriptor, path: String)
    }

    let response: URLResponse
    private let content: Content
    private let offset = Lock(0)

    /// Opens a file, which does not block.
    ///
    /// - Throws: ``LocalFailure``, or `CocoaError` for a file that can't be read, or is a directory or a device.
    init(_ url: URL) throws {
        if url.scheme?.lowercased() == "data" {
            let parsed = try DataURL(url)
            content = .bytes(parsed.data)
            response = URLResponse(
                url: url, mimeType: parsed.mimeType, expectedContentLength: parsed.data.count, textEncodingName: parsed.charset)
            return
        }
        let path = try Self.path(of: url)
        let (file, length) = try Self.open(path)
        content = .file(file, path: path)
        response = URLResponse(
            url: url, mimeType: MIMETypes.type(forExtension: url.pathExtension), expectedContentLength: length ?? -1,
            textEncodingName: nil)
    }

    /// The path of a file on this machine (RFC 8089, section 2).
    private static func path(of url: URL) throws(LocalFailure) -> String {
        if let host = url.host, !host.isEmpty, host.lowercased() != "localhost" { throw LocalFailure(code: .unsupportedURL) }
        let path = url.path
        // A NUL is left out of the path, which is then another one.
        guard !path.isEmpty, !url.absoluteString.containsScalars(of: "%00") else { throw LocalFailure(code: .badURL) }
        return path
    }

    private static func open(_ path: String) throws -> (file: Descriptor, length: Int?) {
        // A pipe would be waited for without O_NONBLOCK.
        guard let file = Descriptor.open(path, O_RDONLY | O_NONBLOCK), let status = file.status else {
            throw FileError.reading(path, errno)
        }
        guard status.isRegularFile else { throw FileError.reading(path, status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL) }
        return (file, FileLength.known(status, of: path).map { Int($0) })
    }

    /// Reads the next bytes; none at the end.
    ///
    /// - Throws: `CocoaError`.
    func read(atMost limit: Int) throws -> Data {
        let start = offset.withLock { $0 }
        switch content {
        case .bytes(let data):
            let piece = data.dropFirst(start).prefix(limit)
            offset.withLock { $0 += piece.count }
            return Data(piece)
        case .file(let file, let path):
            do throws(SystemError) {
                let piece = try file.read(limit, at: Int64(start))
                offset.withLock { $0 += piece.count }
                return piece
            } catch {
                throw FileError.reading(path, error.code)
            }
        }
    }
}
