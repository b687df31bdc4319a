// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Sends the requests of an upload, each with the given fields and options, and those with secrets to the endpoint's origin only.
struct UploadClient: Sendable {
    /// The part of the file that a request sends.
    struct Slice: Sendable {
        let offset: Int64
        let length: Int64
    }

    /// A response with a status of 200 to 299.
    struct Reply: Sendable {
        let head: ResponseHead
        let body: Data
        /// The URL that has responded, after redirects.
        let url: URL
        /// The credentials of the request, as a digest; `nil` for none.
        let sender: String?
        /// Whether it is that of a request to the endpoint's origin, which alone gets all of the credentials.
        let isOfOrigin: Bool

        /// The value of a field that is a number of bytes; `nil` without a valid one.
        func count(_ name: String) -> Int64? { head.count(name) }
    }

    /// A response with another status.
    struct Refusal: Error {
        let url: URL
        let head: ResponseHead
        let error: CurlewError?
        /// As that of a ``Reply``.
        let sender: String?
        var status: Int { head.statusCode }

        /// Whether the server has received other bytes than those of a digest (draft-ietf-httpapi-digest-fields-problem-types-06, section
        /// 3.3, and earlier versions).
        var isDigestMismatch: Bool {
            guard status == 400, let type = error?.problemDetails?.type else { return false }
            let types = "https://iana.org/assignments/http-problem-types"
            return ["mismatched", "mismatching"].contains { type.hasSameBytes(as: "\(types)#digest-\($0)-values") }
        }
    }

    let manager: SessionManager
    let file: URL
    /// Where uploads are begun; without user name and password, which are a field.
    let endpoint: URL
    let options: ResumableUpload.Options
    private let origin: HTTPOrigin?
    /// Receives the number of bytes of a slice that were handed to the network: while it is sent, and at the end.
    private let onSent: @Sendable (_ slice: Slice, _ count: Int64, _ isEnd: Bool) -> Void
    private let queue = DispatchQueue(label: "curlew.upload")

    init(
        _ manager: SessionManager, _ file: URL, to endpoint: URL, _ options: ResumableUpload.Options,
        onSent: @escaping @Sendable (_ slice: Slice, _ count: Int64, _ isEnd: Bool) -> Void
    ) throws {
        self.manager = manager
        self.file = file
        self.onSent = onSent
        let text = endpoint.absoluteString
        guard let plain = URL(string: String(text.droppingUserInfo.prefixScalars { $0 != "#" })) else {
            throw CurlewError.invalidURL(url: endpoint)
        }
        var options = options
        // The upload's own URL has none.
        if let user = endpoint.user, options.headers["Authorization"] == nil {
            options.headers.update(
                .authorization(
                    username: user.removingPercentEncoding ?? user,
                    password: endpoint.password.map { $0.removingPercentEncoding ?? $0 } ?? ""))
        }
        self.options = options
        self.endpoint = plain
        origin = HTTPOrigin(plain)
    }

    /// Who answers the requests: what another one has is not continued.
    var responder: String { manager.responder(to: endpoint, options.requestOptions) }

    // MARK: URLs

    /// Returns the URL of an upload that a server has named.
    ///
    /// - Throws: ``ResumableUploadError/Kind/otherOrigin``, and ``ResumableUploadError/Kind/invalidResponse`` for one that is no URL.
    func uploadURL(_ location: String?, from base: URL) throws -> URL {
        guard let location, let url = location.resolved(against: base), let found = HTTPOrigin(url),
            ["http", "https"].contains(found.scheme)
        else { throw ResumableUploadError.invalidResponse(base, "the response names no URL of the upload") }
        guard found != origin else { return url }
        guard options.allowsOtherOrigins, found.scheme == "https" || origin?.scheme == "http" else {
            throw ResumableUploadError(
                kind: .otherOrigin, subject: base.absoluteString.redactedURL,
                message: "the server has named an upload of another origin, \(url.absoluteString.redactedURL)")
        }
        return url
    }

    // MARK: Requests

    /// Returns the sender of requests to the endpoint with these settings, by the reply of an upload. The endpoint is asked if the upload is
    /// of another origin, which got none of the credentials.
    func sender(by reply: Reply) async throws -> String? {
        guard !reply.isOfOrigin else { return reply.sender }
        do {
            return try await send(.options, endpoint, [:]).sender
        } catch let refusal as Refusal where refusal.status != 401 {
            // Not all servers know the method, but the credentials were sent.
            return refusal.sender
        }
    }

    /// Sends a request.
    ///
    /// - Parameter onInterim: is called with each interim response as it is received, its URL and the request's sender. If it throws, the
    ///   request is cancelled and fails with its error.
    /// - Throws: ``Refusal``, `CurlewError`, `CancellationError`.
    func send(
        _ method: HTTPMethod, _ url: URL, _ fields: HTTPHeaders, _ slice: Slice? = nil,
        onInterim: (@Sendable (_ head: ResponseHead, _ url: URL, _ sender: String?) throws -> Void)? = nil
    ) async throws -> Reply {
        let (headers, settings) = prepared(url, fields, method)
        // Before the response can change them.
        let cookies = manager.session.cookieField(for: endpoint.absoluteString, given: nil)
        let request: DataRequest
        let hasEnded = Lock(false)
        if let slice {
            request = manager.upload(
                file, offset: slice.offset, length: slice.length, to: url, method: method, headers: headers, options: settings
            ).uploadProgress(queue: queue) { [onSent] progress in
                // A call that comes after the end would be about an offset that is not the current one any more.
                hasEnded.withLock { if !$0 { onSent(slice, progress.completedUnitCount, false) } }
            }
        } else {
            request = manager.request(url, method: method, headers: headers, options: settings)
        }
        let interim = onInterim.map { onInterim in
            let heads = request.interimResponses
            return Task {
                do {
                    for await head in heads {
                        try onInterim(head, request.task?.currentRequest?.url ?? url, sender(of: request, cookies))
                    }
                } catch {
                    request.cancel()
                    throw error
                }
            }
        }
        let response = await request.validate(statusCode: 200..<300).serializingData().response
        if let slice, let request = request as? UploadRequest {
            hasEnded.withLock { $0 = true }
            onSent(slice, request.uploadProgress.completedUnitCount, true)
        }
        try await interim?.value
        let credentials = sender(of: request, cookies)
        switch response.result {
        case .success(let body):
            guard let head = response.responseHead else { throw ResumableUploadError.invalidResponse(url, "there is no response") }
            return Reply(head: head, body: body, url: response.response?.url ?? url, sender: credentials, isOfOrigin: isOfOrigin(url))
        case .failure(let error):
            if error is CancellationError { throw error }
            let cause = error as? CurlewError ?? request.delegate.ownError as? CurlewError
            guard case .responseValidationFailed? = cause, let head = response.responseHead else { throw cause ?? error }
            throw Refusal(url: url, head: head, error: cause, sender: credentials)
        }
    }

    private func isOfOrigin(_ url: URL) -> Bool { HTTPOrigin(url) == origin }

    private func sender(of request: DataRequest, _ cookies: String?) -> String? {
        let fields = request.sender(cookies: cookies)
        guard let signer = options.requestOptions.signer ?? manager.session.configuration.signer else { return fields }
        return UploadRecord.digest("\(fields ?? "") \(signer.identity)")
    }

    private func prepared(_ url: URL, _ fields: HTTPHeaders, _ method: HTTPMethod) -> (HTTPHeaders, RequestOptions) {
        var headers = options.headers
        var settings = options.requestOptions
        if !isOfOrigin(url) {
            settings = settings.withoutCredentials(of: endpoint.absoluteString)
            settings.interceptor = nil
        }
        for field in fields { headers.update(field) }
        if [.head, .options].contains(method), settings.cachePolicy == nil { settings.cachePolicy = .reloadIgnoringLocalCacheData }
        return (headers, settings)
    }
}

extension ResponseHead {
    /// The value of a field that is a number of bytes; `nil` without a valid one.
    func count(_ name: String) -> Int64? { value(for: name).flatMap { $0.isAllDigits ? Int64($0) : nil } }
}
