// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A form sent as a body of type `multipart/form-data` (RFC 7578), with parts from memory, files and streams.
///
/// ```swift
/// let form = MultipartFormData()
/// form.append(Data("curlew".utf8), withName: "species")
/// form.append(URL(fileURLWithPath: "/tmp/call.ogg"), withName: "sound")
/// let sighting = try await manager.upload(form, to: "https://example.org/sightings").serializingDecodable(Sighting.self).value
/// ```
///
/// Appending never throws: the error of the first part that can't be appended is stored, and thrown by ``encode()`` and
/// ``writeEncodedData(to:)``; an upload of the form fails with it. A part's header fields are sent in the order `Content-Disposition`,
/// `Content-Type`, others. Names and file names are sent in UTF-8, with `"` as `%22`, carriage return as `%0D` and line feed as `%0A`, as
/// browsers do; other control characters are an error. Not thread-safe.
open class MultipartFormData {
    /// One part of the body.
    struct Part {
        let headers: HTTPHeaders
        let source: Source
        /// The announced length, in bytes.
        let length: UInt64
    }

    /// The source of a part's bytes.
    enum Source {
        case data(Data)
        case file(URL)
        case stream(SingleUseStream)
        /// A source that only a higher layer can read, such as an asynchronous sequence.
        case other(any Sendable)
    }

    /// A stream that can be read only once.
    final class SingleUseStream {
        private var stream: InputStream?

        init(_ stream: InputStream) {
            self.stream = stream
        }

        /// Returns the stream; `nil` if it has been taken before.
        func take() -> InputStream? {
            defer { stream = nil }
            return stream
        }
    }

    /// The delimiter between parts; by default `curlew.boundary.` and 16 random hexadecimal digits.
    ///
    /// 1 to 70 characters of RFC 2046, section 5.1.1; encoding throws for any other value. It must not occur in a part, which is not
    /// checked.
    public var boundary: String

    private var customContentType: String?

    /// The value of the request's `Content-Type`; by default `multipart/form-data; boundary=…` with the current boundary.
    open var contentType: String {
        get { customContentType ?? "multipart/form-data; boundary=\(HTTPToken.isToken(boundary) ? boundary : "\"\(boundary)\"")" }
        set { customContentType = newValue }
    }

    /// The announced length of all parts in bytes, excluding boundaries and header fields.
    public var contentLength: UInt64 {
        parts.reduce(0) { sum, part in
            let (total, isTooLarge) = sum.addingReportingOverflow(part.length)
            return isTooLarge ? .max : total
        }
    }

    /// Whether nothing has been appended, not even a part that failed.
    package var isEmpty: Bool { parts.isEmpty && firstFailure == nil }

    private(set) var parts: [Part] = []
    /// The reason why the first invalid part could not be appended.
    private(set) var firstFailure: CurlewError.MultipartEncodingFailureReason?

    /// Creates a form without parts.
    public init() {
        boundary = "curlew.boundary." + UInt64.random(in: 0 ... .max).hexDigits
    }

    // MARK: Data

    /// Appends a field or, with a file name, a file.
    ///
    /// - Parameters:
    ///   - data: the part's bytes.
    ///   - name: the field's name.
    ///   - fileName: the file's name; `nil`, the default, for a field.
    ///   - mimeType: the content type; `nil`, the default, for none.
    public func append(_ data: Data, withName name: String, fileName: String? = nil, mimeType: String? = nil) {
        append(.data(data), length: UInt64(data.count), headers: headers(name: name, fileName: fileName, mimeType: mimeType))
    }

    // MARK: Files

    /// Appends a file under its own name, with a type derived from the extension by `/etc/mime.types` or a built-in table.
    ///
    /// The type of an unknown extension, and of a name without one, is `application/octet-stream`. For requirements on the file see
    /// ``append(_:withName:fileName:mimeType:)-(URL,_,_,_)``.
    open func append(_ fileURL: URL, withName name: String) {
        let fileName = fileURL.lastPathComponent
        guard !fileName.isEmpty else { return fail(.bodyPartFilenameInvalid(in: fileURL)) }
        append(fileURL, withName: name, fileName: fileName, mimeType: MIMETypes.type(forExtension: fileURL.pathExtension))
    }

    /// Appends a file with a given name and content type.
    ///
    /// It must be a readable regular file, which is checked here. It is read during encoding, never into memory as a whole; if its length
    /// has changed by then, encoding fails. Only a file whose length is reported as 0 although it has bytes, as those of `/proc`, is read here.
    public func append(_ fileURL: URL, withName name: String, fileName: String, mimeType: String) {
        do throws(CurlewError) {
            guard let length = try Self.lengthOfFile(at: fileURL) else {
                return append(try Self.contentsOfFile(at: fileURL), withName: name, fileName: fileName, mimeType: mimeType)
            }
            append(.file(fileURL), length: length, headers: headers(name: name, fileName: fileName, mimeType: mimeType))
        } catch {
            if case .multipartEncodingFailed(let reason, _) = error { fail(reason) }
        }
    }

    /// The length of a file; `nil` if the system does not know it.
    private static func lengthOfFile(at url: URL) throws(CurlewError) -> UInt64? {
        guard url.isFileURL else { throw .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: url)) }
        let isReachable: Bool
        do {
            isReachable = try url.checkResourceIsReachable()
        } catch {
            throw .multipartEncodingFailed(reason: .bodyPartFileNotReachableWithError(atURL: url, error: error))
        }
        guard isReachable else { throw .multipartEncodingFailed(reason: .bodyPartFileNotReachable(at: url)) }
        var status = stat()
        guard stat(url.path, &status) == 0 else {
            let error = FileError.reading(url.path, errno)
            throw .multipartEncodingFailed(reason: .bodyPartFileSizeQueryFailedWithError(forURL: url, error: error))
        }
        let kind = status.st_mode & S_IFMT
        guard kind != S_IFDIR else { throw .multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: url)) }
        guard kind == S_IFREG, status.st_size >= 0 else {
            throw .multipartEncodingFailed(reason: .bodyPartFileSizeNotAvailable(at: url))
        }
        guard access(url.path, R_OK) == 0 else {
            throw .multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
        }
        return FileLength.known(status, of: url.path).map { UInt64($0) }
    }

    private static func contentsOfFile(at url: URL) throws(CurlewError) -> Data {
        do {
            return try Data(readingFrom: url)
        } catch {
            throw .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
        }
    }

    // MARK: Streams

    /// Appends a stream as a file, with its name and content type. See ``append(_:withLength:headers:)``.
    public func append(_ stream: InputStream, withLength length: UInt64, name: String, fileName: String, mimeType: String) {
        append(stream, withLength: length, headers: headers(name: name, fileName: fileName, mimeType: mimeType))
    }

    /// Appends a stream with custom header fields.
    ///
    /// Encoding opens the stream, reads it to its end and closes it, once: a second encoding throws. Encoding fails if the stream has
    /// fewer or more than `length` bytes, or if a header contains a line break.
    public func append(_ stream: InputStream, withLength length: UInt64, headers: HTTPHeaders) {
        append(.stream(SingleUseStream(stream)), length: length, headers: headers)
    }

    // MARK: Sources of higher layers

    /// Appends a source that only a higher layer can read, as a file with its name and content type.
    package func append(other source: any Sendable, withLength length: UInt64, name: String, fileName: String, mimeType: String) {
        append(.other(source), length: length, headers: headers(name: name, fileName: fileName, mimeType: mimeType))
    }

    // MARK: Parts

    private func append(_ source: Source, length: UInt64, headers: HTTPHeaders) {
        if let invalid = headers.first(where: { !$0.isValid }) { return fail(.bodyPartHeaderInvalid(name: invalid.name)) }
        parts.append(Part(headers: headers.inPartOrder, source: source, length: length))
    }

    private func fail(_ reason: CurlewError.MultipartEncodingFailureReason) {
        if firstFailure == nil { firstFailure = reason }
    }

    private func headers(name: String, fileName: String? = nil, mimeType: String? = nil) -> HTTPHeaders {
        var disposition = "form-data; name=\"\(PercentEncoding.escapeQuoted(name))\""
        if let fileName { disposition += "; filename=\"\(PercentEncoding.escapeQuoted(fileName))\"" }
        var headers: HTTPHeaders = ["Content-Disposition": disposition]
        if let mimeType { headers.append(.contentType(mimeType)) }
        return headers
    }
}

extension HTTPHeaders {
    /// `Content-Disposition`, `Content-Type`, then the others in their order.
    fileprivate var inPartOrder: HTTPHeaders {
        let names = ["Content-Disposition", "Content-Type"]
        let first = names.flatMap { name in filter { $0.isNamed(name) } }
        return HTTPHeaders(first + filter { header in !names.contains { header.isNamed($0) } })
    }
}
