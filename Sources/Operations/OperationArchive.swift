// SPDX-License-Identifier: Apache-2.0

/// An operation as a value that outlives its process.
///
/// It holds the request with all its header fields and its body in memory, credentials among them: keep it as carefully as those. Closures,
/// streams, queues and the session are not in it.
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
        /// Whether it has a body that could not be archived.
        let lacksBody: Bool
        let timeout: TimeInterval
        let cachePolicy: UInt
        let handlesCookies: Bool
        let allowsCellularAccess: Bool
        let mainDocumentURL: URL?
    }

    /// The name of a file in the directory of another one; what is no name of a part is refused, as the file is written or removed.
    struct PartName: Sendable, Codable {
        let name: String

        init(_ name: String) { self.name = name }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            name = try container.decode(String.self)
            guard OutputPart.isName(name) else {
                throw Swift.DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "It is no name of a part"))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(name)
        }
    }

    /// The version of this form; one of a later library is refused.
    static let currentVersion = 1

    let version: Int
    let kind: Kind
    let request: Request
    /// The state in which the operation comes back: ready, where it was executing or paused.
    public let state: OperationState
    let response: Head?
    let error: Failure?
    /// Why the serializer refused the response of an operation that is over.
    let refusal: Failure?
    /// The serializer, where it is one of this module's.
    let serializer: SerializerArchive?
    /// What of the body came, where it goes to memory.
    let data: Data?
    /// The file into which the body goes, or has gone.
    public let outputFile: URL?
    /// The hidden file beside it that has what of the body came.
    let part: PartName?
    /// How many bytes of the body came.
    public let totalBytesRead: Int64
    let resumption: RangeResumption?
    let shouldUseCredentialStorage: Bool
    let securityPolicy: SecurityPolicy
}

extension URLConnectionOperation {
    /// The operation as a value; one that is executing is paused for it, and stays so.
    ///
    /// It comes back ready, and an ``HTTPRequestOperation`` resumes where it was: the body so far is in the archive, or in a hidden file
    /// beside the ``outputFile``, which stays there for the archive also if this operation is cancelled or released; resumed instead, it
    /// has the file for itself again. One with an output stream, and every other, begins anew. The body of the request is archived with it,
    /// if it is data or a multipart form in memory; another stream is left out, and the operation fails with
    /// `URLError.requestBodyStreamExhausted` unless its ``inputStream`` is set anew. The serializers of this module are archived, and so is
    /// the judgement of an operation that is over. Waits for what is being done with the operation at this moment.
    public func archive() -> OperationArchive {
        pause()
        return onQueue { makeArchive() }
    }

    private func makeArchive() -> OperationArchive {
        let (serializer, refusal) = (archivedSerializer, archivedRefusal)
        return storage.withLock { storage in
            let isOver = storage.lifecycle.state == .finished
            let memory = (storage.sink as? MemorySink)?.data
            let file = storage.sink as? FileSink
            let keepsBody = isOver || resumesWithRange && storage.resumption != nil && (memory != nil || file != nil)
            return OperationArchive(
                version: OperationArchive.currentVersion, kind: archivedKind, request: OperationArchive.Request(storage.request),
                state: isOver ? .finished : .ready, response: isOver || keepsBody ? storage.response.flatMap { .init($0) } : nil,
                error: storage.error.map { .init($0) }, refusal: isOver ? refusal.map { .init($0) } : nil,
                serializer: serializer.flatMap { SerializerArchive($0) },
                data: isOver ? storage.responseData : keepsBody ? memory : nil, outputFile: file?.url,
                part: keepsBody ? file?.keepForArchive().map { .init($0) } : nil, totalBytesRead: keepsBody ? storage.sink.count : 0,
                resumption: keepsBody ? storage.resumption : nil,
                shouldUseCredentialStorage: storage.settings.shouldUseCredentialStorage,
                securityPolicy: storage.settings.securityPolicy)
        }
    }

    /// Makes an operation of an archive; its session, its closures, and the serializer of an ``HTTPRequestOperation`` that is none of this
    /// module's are to be set anew.
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
        restoreJudgement(from: archive)
    }

    /// Makes an operation of the kind that was archived.
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

extension OperationArchive: CustomStringConvertible, CustomReflectable {
    /// Method, URL without its secrets (``/CurlewHTTP/Redaction``), and state.
    public var description: String { "\(request.method) \((request.url?.absoluteString ?? "").redactedURL), \(state)" }

    /// Nothing beyond the description: header fields and bodies hold secrets.
    public var customMirror: Mirror { .redacted(self) }
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
    /// A request that was archived without a URL can't be sent, and says so when it is.
    fileprivate static var withoutURL: URLRequest {
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}
