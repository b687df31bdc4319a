// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The parts of a request, from which a `URLRequest` is made when needed, as that costs more than the rest of a small request.
struct RequestParts: URLRequestConvertible {
    let url: any URLConvertible
    let method: HTTPMethod
    var parameters: Parameters?
    var encoding: any ParameterEncoding = URLEncoding.default
    let headers: HTTPHeaders?

    func asURLRequest() throws -> URLRequest {
        let request = try URLRequest(url: url, method: method, headers: headers)
        return parameters == nil ? request : try encoding.encode(request, with: parameters)
    }

    /// Returns the request; a ``CurlewError`` has method and URL, which are lost where there is no request.
    func makeURLRequest() throws -> URLRequest {
        do {
            return try asURLRequest()
        } catch let error as CurlewError {
            throw error.describing(FailedRequest(method: method, url: url.redactedDescription))
        }
    }
}

/// The original of a request, from which the task of each attempt is made.
protocol TaskConvertible: Sendable {
    /// The request as the user made it; `nil` for a raw stream.
    var urlRequest: URLRequest? { get }

    /// Method and URL, for errors; `nil` for a raw stream.
    var target: (method: HTTPMethod?, url: String)? { get }

    /// Whether another attempt would send the same request. Reading it rewinds nothing.
    var isRepeatable: Bool { get }

    /// The request's body, if that is a stream. All attempts share it, because it knows whether the stream was read.
    var streamBody: StreamBody? { get }

    /// What an adapter gets to see of the request; `nil` for nothing, as of a raw connection.
    ///
    /// - Parameter headersSuffice: whether it changes header fields only.
    /// - Throws: why there is no `URLRequest`; ``RequestCompression/StreamedBodyError``.
    func adaptable(by adapter: any RequestAdapter, headersSuffice: Bool) throws -> AdaptableRequest?

    /// Returns the work of a task of the session: that of the original, or of what its adapter has made of it.
    ///
    /// - Throws: ``CurlewError/urlRequestValidationFailed(reason:in:)``; `CocoaError` for a file.
    func work(in session: Session, adapted: AdaptableRequest?) throws -> SessionTask.Work
}

/// The original of a data request, and the part that downloads and uploads have in common with one.
struct Requestable: TaskConvertible {
    private enum Original {
        /// A `URLRequest`, with the header fields as they were given: their order and repetitions, which Foundation's type loses.
        case urlRequest(URLRequest, given: GivenHeaders?)
        /// A request without parameters to encode. Its `URLRequest` is created only when it is read, because that costs more than all the
        /// rest of making a request.
        case parts(Target, HTTPMethod, HTTPHeaders)
    }

    private enum Target {
        /// A URL that needs no parsing.
        case plain(String)
        case parsed(URL)

        init(_ convertible: any URLConvertible) throws {
            if let string = Self.string(convertible), PlainURL.isPlain(string) {
                self = .plain(string)
            } else {
                self = .parsed(try convertible.asURL())
            }
        }

        /// The value if it is a string; without a dynamic cast, whose search for conversions is more code than the rest of the initializer.
        private static func string<Value: URLConvertible>(_ value: Value) -> String? {
            Value.self == String.self ? unsafeBitCast(value, to: String.self) : nil
        }

        var url: any URLConvertible {
            switch self {
            case .plain(let string): string
            case .parsed(let url): url
            }
        }

        var string: String {
            switch self {
            case .plain(let string): string
            case .parsed(let url): url.absoluteString
            }
        }

        func transfer(
            _ method: HTTPMethod, _ headers: HTTPHeaders, _ body: (any BodySource)?, in session: Session
        ) throws(CurlewError) -> TransferRequest {
            switch self {
            case .plain(let url): try TransferRequest(plain: url, method: method, headers: headers, body: body, in: session)
            case .parsed(let url): try TransferRequest(url, method: method, headers: headers, body: body, in: session)
            }
        }
    }

    private let original: Original
    /// Whether the response's body is read in pieces.
    private let isStreamed: Bool
    let streamBody: StreamBody?

    /// Creates the original from a convertible.
    ///
    /// - Throws: what the convertible throws.
    init(_ convertible: any URLRequestConvertible, isStreamed: Bool = false) throws {
        let parts = convertible as? RequestParts
        if let parts, parts.parameters == nil {
            try self.init(parts.url, parts.method, parts.headers, isStreamed: isStreamed)
        } else {
            let urlRequest = if let parts { try parts.makeURLRequest() } else { try convertible.asURLRequest() }
            self.init(urlRequest, given: parts?.headers.map { GivenHeaders($0, in: urlRequest) }, isStreamed: isStreamed)
        }
    }

    private init(_ urlRequest: URLRequest, given: GivenHeaders?, isStreamed: Bool) {
        self.isStreamed = isStreamed
        original = .urlRequest(urlRequest, given: given)
        streamBody = urlRequest.httpBodyStream.map { StreamBody($0) }
    }

    /// Creates the original from the parts of a request without parameters.
    init(_ url: any URLConvertible, _ method: HTTPMethod, _ headers: HTTPHeaders?, isStreamed: Bool = false) throws {
        self.isStreamed = isStreamed
        do {
            original = .parts(try Target(url), method, headers ?? [:])
        } catch let error as CurlewError {
            throw error.describing(FailedRequest(method: method, url: url.redactedDescription))
        }
        streamBody = nil
    }

    var urlRequest: URLRequest? {
        try? asURLRequest()
    }

    /// Also of a request whose header fields are invalid.
    var target: (method: HTTPMethod?, url: String)? {
        switch original {
        case .urlRequest(let request, _): (HTTPMethod(rawValue: request.httpMethod ?? "GET"), request.url?.absoluteString ?? "")
        case .parts(let target, let method, _): (method, target.string)
        }
    }

    private func asURLRequest() throws -> URLRequest {
        switch original {
        case .urlRequest(let request, _): request
        case .parts(let target, let method, let headers): try URLRequest(url: target.url, method: method, headers: headers)
        }
    }

    var isRepeatable: Bool { streamBody?.isRepeatable ?? true }

    func adaptable(by adapter: any RequestAdapter, headersSuffice: Bool) throws -> AdaptableRequest? {
        try adaptable(headersSuffice: headersSuffice)
    }

    func work(in session: Session, adapted: AdaptableRequest?) throws -> SessionTask.Work {
        var transfer = try transfer(in: session, adapted: adapted)
        transfer.mayPause = isStreamed
        transfer.expectsLargeBody = isStreamed
        return .transfer(transfer)
    }

    /// The request to resume a download by, without the sensitive header fields, which resume data must not have: the session's, and those of
    /// the request's own redirect policy.
    func resumable(in session: Session, without sensitiveHeaders: Set<String>) -> ResumableRequest? {
        let (url, headers): (URL?, HTTPHeaders) =
            switch original {
            case .urlRequest(let request, let given): (request.url, given?.headers ?? HTTPHeaders(request.allHTTPHeaderFields ?? [:]))
            case .parts(let target, _, let headers): (try? target.url.asURL(), headers)
            }
        let secrets = session.configuration.redirects.sensitiveHeaders.union(sensitiveHeaders)
        return url.map { url in
            ResumableRequest(url, HTTPHeaders(headers.filter { header in !secrets.contains { header.isNamed($0) } }))
        }
    }

    /// What an adapter gets to see of the request, with the body that it is sent with: the bytes in `data` are the request's body, a file or
    /// a stream can't be seen.
    func adaptable(headersSuffice: Bool, data: Data? = nil, replacesBody: Bool = false) throws -> AdaptableRequest {
        switch original {
        case .parts(let target, let method, let headers):
            if headersSuffice { return .headers(headers, method, url: target.string) }
            var request = try URLRequest(url: target.url, method: method, headers: headers)
            if let data { request.httpBody = data }
            return .request(request, given: headers.isEmpty ? nil : GivenHeaders(headers, in: request))
        case .urlRequest(var request, let given):
            // An upload's body replaces the request's own. Foundation on Linux traps when a copied request without a URL is changed.
            if data != nil || replacesBody && request.hasBody, request.url != nil { request.httpBody = data }
            return .request(request, given: given)
        }
    }

    /// Returns the transfer of the original or adapted request, with its own body or the given one.
    ///
    /// An adapter has seen the bytes in `data` as the request's body, and may have replaced them. A file or a stream in `body`, which it
    /// has not seen, is sent unless it has set a body.
    func transfer(
        in session: Session, adapted: AdaptableRequest?, body: (any BodySource)? = nil, data: Data? = nil
    ) throws -> TransferRequest {
        let body = body ?? data.map { DataBody($0) }
        if case .request(let request, let given)? = adapted {
            let own = if case .urlRequest(let own, _) = original { own } else { URLRequest?.none }
            let wasShown = data != nil && (own.map { $0.url != nil } ?? true)
            let isKept = body == nil ? request.httpBodyStream === own?.httpBodyStream : !wasShown && !request.hasBody
            return try TransferRequest(request, given: given, body: isKept ? body ?? streamBody : nil, in: session)
        }
        switch original {
        case .parts(let target, let method, let given):
            let headers = if case .headers(let changed, _, _)? = adapted { changed } else { given }
            return try target.transfer(method, headers, body, in: session)
        case .urlRequest(let request, let given):
            return try TransferRequest(request, given: given, body: body ?? streamBody, in: session)
        }
    }
}

/// The original of a download.
struct Downloadable: TaskConvertible {
    let request: Requestable
    /// The part file from which it is resumed, if there is one.
    let resumption: DownloadResumption
    /// The sensitive header fields of the request's own redirect policy.
    let sensitiveHeaders: Set<String>
    /// Who signs the request, whose identity belongs to what has to be equal in order to resume.
    let signer: (any ExchangeSigner)?

    var urlRequest: URLRequest? { request.urlRequest }

    var target: (method: HTTPMethod?, url: String)? { request.target }

    var isRepeatable: Bool { request.isRepeatable }

    var streamBody: StreamBody? { request.streamBody }

    func adaptable(by adapter: any RequestAdapter, headersSuffice: Bool) throws -> AdaptableRequest? {
        try request.adaptable(headersSuffice: headersSuffice)
    }

    func work(in session: Session, adapted: AdaptableRequest?) throws -> SessionTask.Work {
        var transfer = try request.transfer(in: session, adapted: adapted)
        transfer.expectsLargeBody = true
        if let signer { transfer.signing = RequestSigning(signer, body: nil) }
        resumption.prepare(&transfer, request.resumable(in: session, without: sensitiveHeaders), in: session)
        return .transfer(transfer)
    }
}

/// The original of an upload.
struct Uploadable: TaskConvertible {
    let request: Requestable
    let content: UploadContent
    /// Whether the response's body is received only as fast as it is read.
    let isStreamed: Bool

    var urlRequest: URLRequest? { request.urlRequest }

    var target: (method: HTTPMethod?, url: String)? { request.target }

    var isRepeatable: Bool {
        switch content {
        case .data, .file, .unreadable: true
        case .temporaryFile(let file): !file.isRemoved
        case .stream(let body): body.isRepeatable
        case .sequence(let body): body.isRepeatable
        case .form(let form): form.isRepeatable
        }
    }

    var streamBody: StreamBody? {
        if case .stream(let body) = content { body } else { nil }
    }

    func adaptable(by adapter: any RequestAdapter, headersSuffice: Bool) throws -> AdaptableRequest? {
        if case .data(let data) = content { return try request.adaptable(headersSuffice: headersSuffice, data: data) }
        try adapter.checkUnseenBody()
        return try request.adaptable(headersSuffice: headersSuffice, replacesBody: true)
    }

    func work(in session: Session, adapted: AdaptableRequest?) throws -> SessionTask.Work {
        guard case .data(let data) = content else {
            var transfer = try request.transfer(in: session, adapted: adapted, body: body)
            transfer.expectsLargeBody = true
            transfer.mayPause = isStreamed
            if case .file(_, let slice) = content, slice.setsContentRange, let range = (transfer.body as? FileBody)?.contentRange {
                transfer.headers.update(name: "Content-Range", value: range)
            }
            return .transfer(transfer)
        }
        var transfer = try request.transfer(in: session, adapted: adapted, data: data)
        if isStreamed {
            transfer.expectsLargeBody = true
            transfer.mayPause = true
        }
        return .transfer(transfer)
    }

    private var body: (any BodySource)? {
        switch content {
        case .data: nil
        case .file(let url, let slice): body(of: url, slice)
        case .temporaryFile(let file): body(of: file.url)
        case .stream(let body): body
        case .sequence(let body): body
        case .form(let form): form.body
        case .unreadable(let error): UnreadableBody(error: error)
        }
    }

    /// Returns the body of a file. Created for each attempt, as the file may have changed.
    private func body(of file: URL, _ slice: FileSlice = FileSlice()) -> any BodySource {
        do {
            return try FileBody(path: file.path, offset: slice.offset, length: slice.length)
        } catch let mismatch as BodyLengthMismatch {
            let failure = TransferFailure(
                kind: .requestBody, url: target?.url ?? "", phase: .preparing, message: mismatch.message(announced: 0),
                requestWasSent: false,
                bytesReceived: 0)
            return UnreadableBody(error: CurlewError.transferFailed(failure))
        } catch {
            return UnreadableBody(error: error)
        }
    }
}

/// The original of a raw stream.
struct Streamable: TaskConvertible {
    let host: String
    let port: Int
    let isSecure: Bool
    /// Whether cellular interfaces may be used, as far as the session allows them.
    var allowsCellularAccess = true

    var urlRequest: URLRequest? { nil }

    var target: (method: HTTPMethod?, url: String)? { nil }

    /// The connection can be made again. What was sent on it can't: ``RawConnection/holdForRetry()``.
    var isRepeatable: Bool { true }

    var streamBody: StreamBody? { nil }

    func adaptable(by adapter: any RequestAdapter, headersSuffice: Bool) -> AdaptableRequest? { nil }

    func work(in session: Session, adapted: AdaptableRequest?) throws -> SessionTask.Work {
        var request = StreamTransferRequest(host: host, port: port, isSecure: isSecure, options: session.configuration.options)
        if !allowsCellularAccess || !session.configuration.allowsCellularAccess {
            try request.avoidCellular(session.configuration.interfaces)
        }
        return .stream(request)
    }
}

extension FileBody {
    /// The value of `Content-Range` (RFC 9110, section 14.4); `nil` for an empty body, which has none.
    fileprivate var contentRange: String? {
        guard let length, let fileSize, length > 0 else { return nil }
        return "bytes \(start)-\(start + length - 1)/\(fileSize)"
    }
}
