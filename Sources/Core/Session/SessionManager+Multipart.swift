// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

extension SessionManager {
    /// The result of encoding a form for an upload.
    public enum MultipartFormDataEncodingResult: Sendable {
        /// The form is encoded, and its upload created; `streamFileURL` is the file that is sent, if the form was written to disk.
        ///
        /// The request owns that file, and removes it before its handlers run.
        case success(request: UploadRequest, streamingFromDisk: Bool, streamFileURL: URL?)
        /// The form could not be encoded, or the request could not be created.
        case failure(any Error)
    }

    /// The default size in bytes from which a form is written to disk: 10,000,000.
    public static let multipartFormDataEncodingMemoryThreshold: UInt64 = 10_000_000

    /// Encodes a form and creates an upload of it to a URL.
    ///
    /// The closure that fills the form, and the encoding, run on the global queue of quality `utility`. A form whose parts are smaller
    /// than the threshold is encoded in memory; a larger one is written to a file in the session's temporary directory, readable by this
    /// user only, and sent from there with its exact `Content-Length`. The file is removed when the request finishes, before its handlers
    /// run. A retry sends the same bytes again, including those of streams.
    ///
    /// - Parameters:
    ///   - multipartFormData: fills the form. Create streams in here, as they can be read once only.
    ///   - encodingMemoryThreshold: the size of all parts in bytes from which the form is written to disk; 0 for every form.
    ///   - url: the URL.
    ///   - method: POST by default.
    ///   - headers: header fields; `Content-Type` is replaced by the form's.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    ///   - queue: the queue on which `encodingCompletion` is called; the configuration's `callbackQueue` by default.
    ///   - encodingCompletion: called with the request, which has been started, or with an error:
    ///     ``CurlewError/multipartEncodingFailed(reason:in:)`` for the form, ``CurlewError/sessionInvalidated`` if the session has ended.
    @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil, queue: DispatchQueue? = nil,
        encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        uploadForm(
            multipartFormData, encodingMemoryThreshold, to: url, method, headers, RequestSettings(interceptor, options), queue,
            encodingCompletion)
    }

    /// The same under a name that `CurlewAlamofire`, which overloads `upload`, does not use.
    package func uploadForm(
        _ multipartFormData: @escaping @Sendable (MultipartFormData) -> Void, _ encodingMemoryThreshold: UInt64, to url: any URLConvertible,
        _ method: HTTPMethod, _ headers: HTTPHeaders?, _ settings: RequestSettings?, _ queue: DispatchQueue?,
        _ encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let url = Result { try url.asURL() }
        encode(multipartFormData, encodingMemoryThreshold, settings, queue, encodingCompletion) { contentType in
            var headers = headers ?? [:]
            headers.update(.contentType(contentType))
            return RequestParts(url: try url.get(), method: method, headers: headers)
        }
    }

    /// Encodes a form and creates an upload of it as the body of a `URLRequest`, whose `Content-Type` is replaced by the form's.
    ///
    /// As ``upload(multipartFormData:usingThreshold:to:method:headers:interceptor:options:queue:encodingCompletion:)``.
    @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        with urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        queue: DispatchQueue? = nil, encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        uploadForm(
            multipartFormData, encodingMemoryThreshold, with: urlRequest, RequestSettings(interceptor, options), queue, encodingCompletion)
    }

    /// The same under a name that `CurlewAlamofire`, which overloads `upload`, does not use.
    package func uploadForm(
        _ multipartFormData: @escaping @Sendable (MultipartFormData) -> Void, _ encodingMemoryThreshold: UInt64,
        with urlRequest: any URLRequestConvertible, _ settings: RequestSettings?, _ queue: DispatchQueue?,
        _ encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let urlRequest = Result { try urlRequest.asURLRequest() }
        encode(multipartFormData, encodingMemoryThreshold, settings, queue, encodingCompletion) { contentType in
            var request = try urlRequest.get()
            // Foundation on Linux traps when a copied request without a URL is changed.
            guard request.url != nil else { throw CurlewError.urlRequestValidationFailed(reason: .missingURL) }
            request.setValue(contentType, forHTTPHeaderField: "Content-Type")
            return request
        }
    }

    /// Fills, encodes and uploads a form on a global queue. Does not retain the manager, whose release cancels the upload.
    private func encode(
        _ fill: @escaping @Sendable (MultipartFormData) -> Void, _ threshold: UInt64, _ settings: RequestSettings?,
        _ queue: DispatchQueue?,
        _ completion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?,
        _ makeRequest: @escaping @Sendable (_ contentType: String) throws -> any URLRequestConvertible
    ) {
        let session = session
        DispatchQueue.global(qos: .utility).async { [weak self] in
            let result: MultipartFormDataEncodingResult
            do {
                if !session.isOpen { throw session.endError }
                let form = MultipartFormData()
                fill(form)
                let body = try EncodedForm(form, threshold: threshold, directory: session.configuration.temporaryDirectory)
                let request = try makeRequest(form.contentType)
                guard let self, session.isOpen else { throw session.endError }
                result = .success(
                    request: self.makeUpload(body.content, request, settings), streamingFromDisk: body.fileURL != nil,
                    streamFileURL: body.fileURL)
            } catch {
                result = .failure(session.delivered(error))
            }
            guard let completion else { return }
            (queue ?? session.configuration.callbackQueue).async { completion(result) }
        }
    }
}

/// An encoded form, in memory or in a temporary file.
private struct EncodedForm {
    let content: Uploadable.Content
    var fileURL: URL? { if case .temporaryFile(let file) = content { file.url } else { nil } }

    init(_ form: MultipartFormData, threshold: UInt64, directory: URL) throws {
        guard form.contentLength >= threshold else {
            content = .data(try form.encode())
            return
        }
        let number = String(UInt64.random(in: 0 ... .max), radix: 16)
        let url = directory.appendingPathComponent("curlew-form-\(number)", isDirectory: false)
        // The content may be secret, so only this user may read the file. An existing one, perhaps another user's, is not written to.
        try form.writeEncodedData(to: url, permissions: 0o600)
        // From here on the file is removed with its last reference.
        content = .temporaryFile(TemporaryFile(url))
    }
}
