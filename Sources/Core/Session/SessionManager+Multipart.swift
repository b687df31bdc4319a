// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

extension SessionManager {
    /// The result of encoding a form for an upload.
    public enum MultipartFormDataEncodingResult: Sendable {
        /// The upload of the form is created; `streamingFromDisk` is whether the form was written to a file, which is sent, and
        /// `streamFileURL` that file.
        ///
        /// The request owns that file, and removes it before its handlers run. A form with files is not written to another one.
        case success(request: UploadRequest, streamingFromDisk: Bool, streamFileURL: URL?)
        /// The form could not be encoded, or the request could not be created.
        case failure(any Error)
    }

    /// The default size in bytes from which a form is written to disk: 10,000,000.
    public static let multipartFormDataEncodingMemoryThreshold: UInt64 = 10_000_000

    /// Encodes a form and creates an upload of it to a URL. In new code prefer
    /// ``upload(_:to:method:headers:interceptor:options:)``, which writes nothing to disk and needs no closure.
    ///
    /// The closure that fills the form, and the encoding, run on the global queue of quality `utility`. A form whose parts are smaller
    /// than the threshold is encoded in memory. A larger one of files and data is sent from where its parts lie; its files, if they are 64
    /// at most, are open by then and may be removed. A larger one with streams, or of data alone, is written to a file in the session's
    /// temporary directory, readable by this user only, which is removed when the request finishes, before its handlers run. All are sent
    /// with their exact `Content-Length`. A retry sends the same bytes again, including those of streams.
    ///
    /// - Parameters:
    ///   - multipartFormData: fills the form. Create streams in here, as they can be read once only.
    ///   - encodingMemoryThreshold: the size of all parts in bytes from which the form is not encoded in memory; 0 for every form.
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
            multipartFormData, encodingMemoryThreshold, to: url, method, headers, RequestSettings.of(interceptor, options), queue,
            copiesFiles: false, encodingCompletion)
    }

    /// The same under a name that `CurlewAlamofire`, which overloads `upload`, does not use.
    ///
    /// - Parameter copiesFiles: whether a form with files is written to disk like any other, as Alamofire 4 does.
    package func uploadForm(
        _ multipartFormData: @escaping @Sendable (MultipartFormData) -> Void, _ encodingMemoryThreshold: UInt64, to url: any URLConvertible,
        _ method: HTTPMethod, _ headers: HTTPHeaders?, _ settings: RequestSettings?, _ queue: DispatchQueue?, copiesFiles: Bool,
        _ encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let url = Result { try url.asURL() }
        encode(multipartFormData, encodingMemoryThreshold, settings, queue, copiesFiles, encodingCompletion) { contentType in
            RequestParts(RequestParts(url: try url.get(), method: method, headers: headers), contentType: contentType)
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
            multipartFormData, encodingMemoryThreshold, with: urlRequest, RequestSettings.of(interceptor, options), queue,
            copiesFiles: false, encodingCompletion)
    }

    /// The same under a name that `CurlewAlamofire`, which overloads `upload`, does not use.
    package func uploadForm(
        _ multipartFormData: @escaping @Sendable (MultipartFormData) -> Void, _ encodingMemoryThreshold: UInt64,
        with urlRequest: any URLRequestConvertible, _ settings: RequestSettings?, _ queue: DispatchQueue?, copiesFiles: Bool,
        _ encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let urlRequest = Result { try urlRequest.asURLRequest() }
        encode(multipartFormData, encodingMemoryThreshold, settings, queue, copiesFiles, encodingCompletion) { contentType in
            try FormRequest(request: urlRequest.get(), contentType: contentType).asURLRequest()
        }
    }

    /// Fills, encodes and uploads a form on a global queue. Does not retain the manager, whose release cancels the upload.
    private func encode(
        _ fill: @escaping @Sendable (MultipartFormData) -> Void, _ threshold: UInt64, _ settings: RequestSettings?,
        _ queue: DispatchQueue?, _ copiesFiles: Bool,
        _ completion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?,
        _ makeRequest: @escaping @Sendable (_ contentType: String) throws -> any URLRequestConvertible
    ) {
        let session = session
        let deadline = Deadline.earliest(settings?.options.deadline)
        DispatchQueue.global(qos: .utility).async { [weak self] in
            let result: MultipartFormDataEncodingResult
            do {
                if !session.isOpen { throw session.endError }
                let form = MultipartFormData()
                fill(form)
                let directory = session.configuration.temporaryDirectory
                let body = try EncodedForm(form, threshold: threshold, directory: directory, copiesFiles: copiesFiles)
                let request = try makeRequest(form.contentType)
                guard let self, session.isOpen else { throw session.endError }
                result = .success(
                    request: Deadline.with(deadline) { self.makeUpload(body.content, request, settings) },
                    streamingFromDisk: body.fileURL != nil,
                    streamFileURL: body.fileURL)
            } catch {
                result = .failure(session.delivered(error))
            }
            guard let completion else { return }
            (queue ?? session.configuration.callbackQueue).async { completion(result) }
        }
    }
}

/// A request with the content type of a form.
struct FormRequest: URLRequestConvertible {
    let request: any URLRequestConvertible
    let contentType: String

    func asURLRequest() throws -> URLRequest {
        var request = try request.asURLRequest()
        // Foundation on Linux traps when a copied request without a URL is changed.
        guard request.url != nil else { throw CurlewError.urlRequestValidationFailed(reason: .missingURL) }
        request.setValue(contentType, forHTTPHeaderField: "Content-Type")
        return request
    }
}

/// An encoded form, in memory or in a temporary file, or one that is sent from where its parts lie.
private struct EncodedForm {
    let content: UploadContent
    var fileURL: URL? { if case .temporaryFile(let file) = content { file.url } else { nil } }

    init(_ form: MultipartFormData, threshold: UInt64, directory: URL, copiesFiles: Bool) throws {
        let (files, streams, others) = form.sourceCounts
        // A sequence can't be encoded at once.
        guard others == 0 else {
            content = .form(try UploadForm(form))
            return
        }
        guard form.contentLength >= threshold else {
            content = .data(try form.encode())
            return
        }
        guard copiesFiles || files == 0 || streams > 0 else {
            content = .form(try UploadForm(form, holdsFiles: files <= HeldFile.limit && HeldFile.isSupported))
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
