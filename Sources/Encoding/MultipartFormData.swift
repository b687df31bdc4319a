// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A form of parts that goes out as a body of the type `multipart/form-data` (RFC 7578): text fields, files, streams.
///
/// ```swift
/// manager.upload(multipartFormData: { form in
///     form.append(Data("curlew".utf8), withName: "species")
///     form.append(URL(fileURLWithPath: "/tmp/call.ogg"), withName: "sound")
/// }, to: "https://example.org/sightings") { result in … }
/// ```
///
/// Appending never throws: the first part that can't be had is remembered, and thrown by ``encode()`` and ``writeEncodedData(to:)``.
/// A part's header fields come in the order `Content-Disposition`, `Content-Type`, others. Names and file names go out as UTF-8 with `"`
/// as `%22`, a carriage return as `%0D` and a line feed as `%0A`, as browsers do it; other control characters are an error. One thread at
/// a time uses a form.
open class MultipartFormData {
    /// One part of the body.
    struct Part {
        let headers: HTTPHeaders
        let source: Source
        /// How many bytes the source was said to have.
        let length: UInt64
    }

    /// Where a part's bytes come from.
    enum Source {
        case data(Data)
        case file(URL)
        case stream(SingleUseStream)
    }

    /// A stream, which can be read once.
    final class SingleUseStream {
        private var stream: InputStream?

        init(_ stream: InputStream) {
            self.stream = stream
        }

        /// The stream, if nobody took it before.
        func take() -> InputStream? {
            defer { stream = nil }
            return stream
        }
    }

    /// What stands between the parts: `curlew.boundary.` and 16 random hexadecimal digits, unless set.
    ///
    /// 1 to 70 characters of RFC 2046, section 5.1.1; encoding throws for another one. No part may contain it: nobody checks that.
    public var boundary: String

    private var givenContentType: String?

    /// The value for the request's `Content-Type`: `multipart/form-data; boundary=…`, with the present boundary, unless set.
    open var contentType: String {
        get { givenContentType ?? "multipart/form-data; boundary=\(HTTPToken.isToken(boundary) ? boundary : "\"\(boundary)\"")" }
        set { givenContentType = newValue }
    }

    /// The number of bytes in the parts as they were announced, without boundaries and header fields.
    public var contentLength: UInt64 {
        parts.reduce(0) { sum, part in
            let (total, isTooLarge) = sum.addingReportingOverflow(part.length)
            return isTooLarge ? .max : total
        }
    }

    /// Whether nothing was appended, not even in vain.
    public var isEmpty: Bool { parts.isEmpty && firstFailure == nil }

    private(set) var parts: [Part] = []
    /// What was wrong with the first part that could not be had.
    private(set) var firstFailure: CurlewError.MultipartEncodingFailureReason?

    /// Makes a form without parts.
    public init() {
        let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
        boundary = "curlew.boundary." + String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: Data

    /// Appends a field: bytes under a name.
    public func append(_ data: Data, withName name: String) {
        append(.data(data), length: UInt64(data.count), headers: headers(name: name))
    }

    /// Appends bytes under a name, with a type.
    public func append(_ data: Data, withName name: String, mimeType: String) {
        append(.data(data), length: UInt64(data.count), headers: headers(name: name, mimeType: mimeType))
    }

    /// Appends bytes as a file: with its name and type.
    public func append(_ data: Data, withName name: String, fileName: String, mimeType: String) {
        append(.data(data), length: UInt64(data.count), headers: headers(name: name, fileName: fileName, mimeType: mimeType))
    }

    // MARK: Files

    /// Appends a file under its own name; its type follows from the name's extension, by `/etc/mime.types` or a built-in table.
    ///
    /// A type that neither knows is `application/octet-stream`. A name without an extension is an error. For the file itself see
    /// ``append(_:withName:fileName:mimeType:)-(URL,_,_,_)``.
    open func append(_ fileURL: URL, withName name: String) {
        let (fileName, pathExtension) = (fileURL.lastPathComponent, fileURL.pathExtension)
        guard !fileName.isEmpty, !pathExtension.isEmpty else { return fail(.bodyPartFilenameInvalid(in: fileURL)) }
        append(fileURL, withName: name, fileName: fileName, mimeType: MIMETypes.type(forExtension: pathExtension))
    }

    /// Appends a file, with the name and type to be told to the server.
    ///
    /// It has to be a regular file that may be read, which is checked here. It is read when the form is encoded, never into memory as a
    /// whole; one that is longer or shorter by then fails the encoding.
    public func append(_ fileURL: URL, withName name: String, fileName: String, mimeType: String) {
        do throws(CurlewError) {
            let length = try Self.lengthOfFile(at: fileURL)
            append(.file(fileURL), length: length, headers: headers(name: name, fileName: fileName, mimeType: mimeType))
        } catch {
            if case .multipartEncodingFailed(let reason) = error { fail(reason) }
        }
    }

    private static func lengthOfFile(at url: URL) throws(CurlewError) -> UInt64 {
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
        guard kind == S_IFREG, let length = UInt64(exactly: status.st_size) else {
            throw .multipartEncodingFailed(reason: .bodyPartFileSizeNotAvailable(at: url))
        }
        guard access(url.path, R_OK) == 0 else {
            throw .multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
        }
        return length
    }

    // MARK: Streams

    /// Appends a stream as a file: with its name and type. As ``append(_:withLength:headers:)``.
    public func append(_ stream: InputStream, withLength length: UInt64, name: String, fileName: String, mimeType: String) {
        append(stream, withLength: length, headers: headers(name: name, fileName: fileName, mimeType: mimeType))
    }

    /// Appends a stream with header fields of one's own.
    ///
    /// The stream is opened, read to its end and closed when the form is encoded, once: a second encoding throws. One that gives fewer
    /// or more than `length` bytes fails the encoding, and so does a header with a line break in it.
    public func append(_ stream: InputStream, withLength length: UInt64, headers: HTTPHeaders) {
        append(.stream(SingleUseStream(stream)), length: length, headers: headers)
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
    /// `Content-Disposition`, `Content-Type`, then the others as they stand.
    fileprivate var inPartOrder: HTTPHeaders {
        let names = ["Content-Disposition", "Content-Type"]
        let first = names.flatMap { name in filter { $0.isNamed(name) } }
        return HTTPHeaders(first + filter { header in !names.contains { header.isNamed($0) } })
    }
}
