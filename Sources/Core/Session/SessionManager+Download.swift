// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Creates a download of a URL.
    ///
    /// Does not throw: a request that can't be created runs its handlers with the error.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - method: GET by default.
    ///   - parameters: encoded into query or body; `nil`, the default, for none.
    ///   - encoding: how parameters are encoded; by default into the query for GET, HEAD and DELETE, into a form body for other methods.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - requestOptions: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    ///   - destination: returns the file's destination once the body is complete; with `nil`, the default, the file remains in the
    ///     session's temporary directory, from which the program removes it.
    @preconcurrency @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        requestOptions: RequestOptions? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), interceptor: interceptor,
            requestOptions: requestOptions, to: destination)
    }

    /// Creates a download of a `URLRequest` with its own interceptor and options; the destination as in
    /// ``download(_:method:parameters:encoding:headers:interceptor:requestOptions:to:)-(_,_,_,_,_,_,_,DownloadRequest.DownloadFileDestination?)``.
    @preconcurrency @discardableResult
    public func download(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        guard let settings = RequestSettings.of(interceptor, requestOptions) else { return download(urlRequest, to: destination) }
        return handOver(settings) {
            download(urlRequest, to: destination)
        } or: {
            makeDownload(urlRequest, settings, destination.map { .asked($0) } ?? .none)
        }
    }

    /// Creates a download of a URL to a file.
    ///
    /// The body is written to an unnamed or hidden file in the same directory, which gets its name when the body is complete. An existing
    /// file fails the request before anything is downloaded, unless `options` has `removePreviousFile`.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - method: GET by default.
    ///   - parameters: encoded into query or body; `nil`, the default, for none.
    ///   - encoding: how parameters are encoded; by default into the query for GET, HEAD and DELETE, into a form body for other methods.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - requestOptions: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    ///   - fileURL: the file's destination.
    ///   - options: whether to create directories, to replace a file, and to resume an earlier download; none by default.
    @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        requestOptions: RequestOptions? = nil,
        to fileURL: URL, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), interceptor: interceptor,
            requestOptions: requestOptions, to: fileURL, options: options)
    }

    /// Creates a download of a `URLRequest` to a file.
    @discardableResult
    public func download(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
        requestOptions: RequestOptions? = nil, to fileURL: URL,
        options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        let settings = RequestSettings.of(interceptor, requestOptions)
        let destination = FileReceiver.Destination.known(fileURL, options)
        return handOver(settings, destination) {
            download(urlRequest) { _, _ in (fileURL, options) }
        } or: {
            makeDownload(urlRequest, settings, destination)
        }
    }

    /// Resumes a cancelled or failed download from its ``DownloadRequest/resumeData``.
    ///
    /// The bytes on disk are kept if the server's validator still matches (`If-Range`; RFC 9110, section 13.1.5). Otherwise the download
    /// restarts from the beginning, as it does if the part file is missing or in use by another download. Invalid data fails the request
    /// with ``CurlewError/resumeDataInvalid(reason:in:)``. The adapter is called as for any request.
    ///
    /// - Parameters:
    ///   - resumeData: from a request or response of this library. It has the path of a file that the download writes to, so accept it from
    ///     trusted sources only.
    ///   - destination: returns the file's destination once the body is complete; with `nil`, the default, the file keeps its place.
    @discardableResult
    public func download(
        resumingWith resumeData: Data, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        resumeDownload(resumeData, RequestSettings.of(interceptor, requestOptions), destination.map { .asked($0) } ?? .none)
    }

    /// Resumes a cancelled or failed download to a file; see
    /// ``download(resumingWith:interceptor:requestOptions:to:)-(_,_,_,DownloadRequest.DownloadFileDestination?)``.
    @discardableResult
    public func download(
        resumingWith resumeData: Data, interceptor: (any RequestInterceptor)? = nil, requestOptions: RequestOptions? = nil,
        to fileURL: URL, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        resumeDownload(resumeData, RequestSettings.of(interceptor, requestOptions), .known(fileURL, options))
    }

    func makeDownload(
        _ urlRequest: any URLRequestConvertible, _ settings: RequestSettings?, _ destination: FileReceiver.Destination
    ) -> DownloadRequest {
        perform(destination, DownloadResumption(destination: destination.resumed), settings) { try Requestable(urlRequest) }
    }

    private func resumeDownload(
        _ data: Data, _ settings: RequestSettings?, _ destination: FileReceiver.Destination
    ) -> DownloadRequest {
        let record = Result { () throws(CurlewError) in try ResumeRecord(data) }
        return perform(destination, DownloadResumption(record: try? record.get()), settings) { try Requestable(try record.get().parts) }
    }

    private func perform(
        _ destination: FileReceiver.Destination, _ resumption: DownloadResumption, _ settings: RequestSettings?,
        _ make: () throws -> Requestable
    ) -> DownloadRequest {
        perform(
            DownloadRequest(
                original: original(Request.RequestTask.download) {
                    let secrets = settings?.options.redirects?.sensitiveHeaders ?? []
                    let signer = session.signer(for: settings?.options)
                    return Downloadable(request: try make(), resumption: resumption, sensitiveHeaders: secrets, signer: signer)
                },
                session: session, sessionDelegate: delegate,
                receiver: FileReceiver(
                    to: destination, temporaryDirectory: session.configuration.temporaryDirectory, resumption: resumption),
                settings: settings))
    }
}

extension ResumeRecord {
    /// The request that the download repeats.
    fileprivate var parts: RequestParts {
        RequestParts(
            url: url, method: .get, parameters: nil, encoding: URLEncoding.default,
            headers: HTTPHeaders(headers.map { HTTPHeader(name: $0.name, value: $0.value) }))
    }
}
