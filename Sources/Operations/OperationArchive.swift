// SPDX-License-Identifier: Apache-2.0

/// A codable snapshot of an operation.
///
/// It contains the request with all header fields and a body in memory, including credentials: protect it as you protect them. Closures,
/// streams, queues and the session are not included.
public struct OperationArchive: Sendable, Codable {
    enum Kind: String, Sendable, Codable {
        case urlConnection, http
    }

    struct Failure: Sendable, Codable {
        let domain: String
        let code: Int
        let description: String
    }

    struct Head: Sendable, Codable {
        let url: URL
        let status: Int
        let headers: [String: String]
    }

    struct Request: Sendable, Codable {
        let url: URL?
        let method: String
        let headers: [String: String]
        let body: Data?
        /// Whether the request has a body that could not be archived.
        let lacksBody: Bool
        let timeout: TimeInterval
        let cachePolicy: UInt
        let handlesCookies: Bool
        let allowsCellularAccess: Bool
        let mainDocumentURL: URL?
    }

    /// The name of a file in the destination's directory. Names that no partial file has are rejected, as the file is written or removed.
    struct PartName: Sendable, Codable {
        let name: String

        init(_ name: String) { self.name = name }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            name = try container.decode(String.self)
            guard PartFile.isName(name) else {
                let text = "The name is not that of a partial file: \(Redaction.escaped(name))"
                throw Swift.DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: text))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(name)
        }
    }

    /// The version of the archive format; later versions are rejected.
    static let currentVersion = 1

    let version: Int
    let kind: Kind
    let request: Request
    /// The state in which the operation is restored: ready if it was executing or paused.
    public let state: OperationState
    let response: Head?
    let error: Failure?
    /// Why the serializer rejected the response of a finished operation. The name is the key in the archive's format.
    let refusal: Failure?
    /// The serializer, if it is one of this module's.
    let serializer: ResponseSerializerArchive?
    /// The bytes of the body received so far, if it is received into memory.
    let data: Data?
    /// The file that the body is, or was, written to.
    public let outputFile: URL?
    /// The hidden file in the same directory with the bytes received so far.
    let part: PartName?
    /// The number of bytes of the body received.
    public let totalBytesRead: Int64
    let resumption: RangeResumption?
    let shouldUseCredentialStorage: Bool
    let securityPolicy: SecurityPolicy
}

extension URLConnectionOperation {
    /// Returns a codable snapshot of the operation, pausing it as ``pause()`` does, also if it still waits for its start.
    ///
    /// The restored operation is ready. An ``HTTPRequestOperation`` resumes where it stopped: the bytes so far are in the archive, or in a
    /// hidden file in the directory of the ``outputFile``. That file is kept for the archive even if this operation is cancelled or
    /// released; if it is resumed instead, the file belongs to it again. An operation with an output stream, and every other operation,
    /// starts over.
    ///
    /// The request's body is archived if it is data or a multipart form in memory. Another stream is left out; the restored operation fails
    /// with `URLError.requestBodyStreamExhausted` unless its ``inputStream`` is set. Serializers of this module are archived, as is the
    /// outcome of a finished operation. Waits for work in progress on the operation's queue.
    public func archive() -> OperationArchive {
        pause()
        return onQueue { makeArchive() }
    }

    private func makeArchive() -> OperationArchive {
        let (serializer, rejection) = (archivedSerializer, archivedRejection)
        return storage.withLock { storage in
            let isFinished = storage.lifecycle.state == .finished
            let memory = (storage.sink as? MemorySink)?.data
            let file = storage.sink as? FileSink
            let keepsBody = isFinished || resumesWithRange && storage.resumption != nil && (memory != nil || file != nil)
            return OperationArchive(
                version: OperationArchive.currentVersion, kind: archivedKind, request: OperationArchive.Request(storage.request),
                state: isFinished ? .finished : .ready, response: isFinished || keepsBody ? storage.response.flatMap { .init($0) } : nil,
                error: storage.error.map { .init($0) }, refusal: isFinished ? rejection.map { .init($0) } : nil,
                serializer: serializer.flatMap { ResponseSerializerArchive($0) },
                data: isFinished ? storage.responseData : keepsBody ? memory : nil, outputFile: file?.url,
                part: keepsBody ? file?.keepForArchive().map { .init($0) } : nil, totalBytesRead: keepsBody ? storage.sink.count : 0,
                resumption: keepsBody ? storage.resumption : nil,
                shouldUseCredentialStorage: storage.settings.shouldUseCredentialStorage,
                securityPolicy: storage.settings.securityPolicy)
        }
    }

    /// Creates an operation from an archive. Its session and closures have to be set again, as does the serializer of an
    /// ``HTTPRequestOperation`` if it is not one of this module's.
    ///
    /// - Throws: ``OperationError/unsupportedArchive(version:)``.
    public convenience init(archive: OperationArchive) throws {
        guard archive.version == OperationArchive.currentVersion else { throw OperationError.unsupportedArchive(version: archive.version) }
        self.init(request: archive.request.urlRequest)
        storage.withLock { storage in
            storage.lifecycle = OperationLifecycle(state: archive.state == .finished ? .finished : .ready)
            storage.settings.shouldUseCredentialStorage = archive.shouldUseCredentialStorage
            storage.settings.securityPolicy = archive.securityPolicy
            storage.response = archive.response?.urlResponse
            storage.error = archive.error?.error
            storage.resumption = archive.resumption
            storage.totalBytesRead = archive.totalBytesRead
            storage.isStreamUsed = archive.request.lacksBody
            if let file = archive.outputFile {
                storage.sink = FileSink(file, partName: archive.part?.name, count: archive.totalBytesRead)
            } else if let data = archive.data, archive.state != .finished {
                storage.sink = MemorySink(data, limit: .max)
            }
            if archive.state == .finished { storage.responseData = archive.data }
        }
        restoreOutcome(from: archive)
    }

    /// Creates an operation of the archived kind.
    ///
    /// - Throws: ``OperationError/unsupportedArchive(version:)``.
    public static func operation(from archive: OperationArchive) throws -> URLConnectionOperation {
        switch archive.kind {
        case .urlConnection: try URLConnectionOperation(archive: archive)
        case .http: try HTTPRequestOperation(archive: archive)
        }
    }
}

// MARK: - Descriptions

extension OperationArchive: CustomStringConvertible, RedactedReflectable {
    /// The method, the redacted URL (``/CurlewHTTP/Redaction``) and the state: header fields and bodies contain secrets.
    public var description: String { "\(request.method) \((request.url?.absoluteString ?? "").redactedURL), \(state)" }
}

// MARK: - Parts

extension OperationArchive.Failure {
    init(_ error: any Error) {
        let foundation = error as NSError
        (domain, code, description) = (foundation.domain, foundation.code, error.localizedDescription)
    }

    var error: any Error {
        let info = [NSLocalizedDescriptionKey: description]
        guard domain == NSURLErrorDomain else { return NSError(domain: domain, code: code, userInfo: info) }
        return URLError(URLError.Code(rawValue: code) ?? .unknown, userInfo: info)
    }
}

extension OperationArchive.Head {
    init?(_ response: HTTPURLResponse) {
        guard let url = response.url else { return nil }
        let fields = response.allHeaderFields.compactMap { key, value in (key as? String).map { ($0, "\(value)") } }
        self.init(url: url, status: response.statusCode, headers: Dictionary(fields) { first, _ in first })
    }

    var urlResponse: HTTPURLResponse? {
        HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers)
    }
}

extension OperationArchive.Request {
    init(_ request: URLRequest) {
        let body = request.httpBody ?? (request.httpBodyStream as? MultipartBodyStream)?.dataInMemory
        self.init(
            url: request.url, method: request.httpMethod ?? "GET", headers: request.allHTTPHeaderFields ?? [:], body: body,
            lacksBody: body == nil && request.httpBodyStream != nil,
            timeout: request.timeoutInterval, cachePolicy: UInt(request.cachePolicy.rawValue),
            handlesCookies: request.httpShouldHandleCookies, allowsCellularAccess: request.allowsCellularAccess,
            mainDocumentURL: request.mainDocumentURL)
    }

    var urlRequest: URLRequest {
        guard let url else { return .withoutURL }
        var request = URLRequest(
            url: url, cachePolicy: .init(rawValue: .init(cachePolicy)) ?? .useProtocolCachePolicy, timeoutInterval: timeout)
        request.httpMethod = method
        request.allHTTPHeaderFields = headers
        request.httpBody = body
        request.httpShouldHandleCookies = handlesCookies
        request.allowsCellularAccess = allowsCellularAccess
        request.mainDocumentURL = mainDocumentURL
        return request
    }
}

extension URLRequest {
    /// A request that was archived without a URL can't be sent, and fails when it is started.
    fileprivate static var withoutURL: URLRequest {
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}
