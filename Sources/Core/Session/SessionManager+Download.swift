// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Makes a download of a URL.
    ///
    /// Never throws: a request that can't be made runs its handlers with the error.
    ///
    /// - Parameters:
    ///   - url: where from.
    ///   - method: GET by default.
    ///   - parameters: what is encoded into query or body; `nil` for none.
    ///   - encoding: how.
    ///   - headers: header fields; they replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil` for none.
    ///   - destination: asked at the end where the file goes; `nil` leaves it in the session's temporary directory, from where the
    ///     program removes it.
    @preconcurrency @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), interceptor: interceptor,
            to: destination)
    }

    /// Makes a download of a `URLRequest` with an interceptor of its own; the destination as in
    /// ``download(_:method:parameters:encoding:headers:interceptor:to:)-(_,_,_,_,_,_,DownloadRequest.DownloadFileDestination?)``.
    @preconcurrency @discardableResult
    public func download(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        guard interceptor != nil else { return download(urlRequest, to: destination) }
        return makeDownload(urlRequest, interceptor, destination.map { .asked($0) } ?? .none)
    }

    /// Makes a download of a URL to a file.
    ///
    /// The body is written hidden beside the file, and renamed when it is whole. What is there already is an error unless `options` say
    /// otherwise, before anything is downloaded.
    ///
    /// - Parameters:
    ///   - url: where from.
    ///   - method: GET by default.
    ///   - parameters: what is encoded into query or body; `nil` for none.
    ///   - encoding: how.
    ///   - headers: header fields; they replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil` for none.
    ///   - fileURL: where to.
    ///   - options: whether to make directories and to replace a file; neither by default.
    @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        to fileURL: URL, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), interceptor: interceptor,
            to: fileURL, options: options)
    }

    /// Makes a download of a `URLRequest` to a file.
    @discardableResult
    public func download(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, to fileURL: URL,
        options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        makeDownload(urlRequest, interceptor, .known(fileURL, options))
    }

    /// Goes on with a download that was cancelled or failed, from its ``DownloadRequest/resumeData``.
    ///
    /// What has come stays if the server still has the same (RFC 9110, section 13.1.5), else the download begins anew; so it does if the
    /// part file is gone, or in use by another download. Data that is no resume data fails the request with
    /// ``CurlewError/resumeDataInvalid(reason:)``. The adapter takes part as in any request.
    ///
    /// - Parameters:
    ///   - resumeData: made by this library. It names a file that the download writes to: as trustworthy as where it comes from.
    ///   - destination: asked at the end where the file goes; `nil` leaves it in its place.
    @discardableResult
    public func download(
        resumingWith resumeData: Data, to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        resumeDownload(resumeData, destination.map { .asked($0) } ?? .none)
    }

    /// Goes on with a download that was cancelled or failed, to a file; see ``download(resumingWith:to:)``.
    @discardableResult
    public func download(
        resumingWith resumeData: Data, to fileURL: URL, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        resumeDownload(resumeData, .known(fileURL, options))
    }

    func makeDownload(
        _ urlRequest: any URLRequestConvertible, _ interceptor: (any RequestInterceptor)?, _ destination: FileReceiver.Destination
    ) -> DownloadRequest {
        perform(destination, DownloadResumption(destination: destination.resumed), interceptor) { try Requestable(urlRequest) }
    }

    private func resumeDownload(_ data: Data, _ destination: FileReceiver.Destination) -> DownloadRequest {
        let record = Result { () throws(CurlewError) in try ResumeRecord(data) }
        return perform(destination, DownloadResumption(record: try? record.get()), nil) { try Requestable(try record.get().parts) }
    }

    private func perform(
        _ destination: FileReceiver.Destination, _ resumption: DownloadResumption, _ interceptor: (any RequestInterceptor)?,
        _ make: () throws -> Requestable
    ) -> DownloadRequest {
        perform(
            DownloadRequest(
                original: original(Request.RequestTask.download) { Downloadable(request: try make(), resumption: resumption) },
                session: session, sessionDelegate: delegate,
                receiver: FileReceiver(
                    to: destination, temporaryDirectory: session.configuration.temporaryDirectory, resumption: resumption),
                interceptor: interceptor))
    }
}

extension ResumeRecord {
    /// The request that is made again.
    fileprivate var parts: RequestParts {
        RequestParts(
            url: url, method: .get, parameters: nil, encoding: URLEncoding.default,
            headers: HTTPHeaders(headers.map { HTTPHeader(name: $0.name, value: $0.value) }))
    }
}
