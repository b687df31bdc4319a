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
    ///   - destination: asked at the end where the file goes; `nil` leaves it in the session's temporary directory, from where the
    ///     program removes it.
    @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        download(RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), to: destination)
    }

    /// Makes a download of a `URLRequest`; the destination as in
    /// ``download(_:method:parameters:encoding:headers:to:)-(_,_,_,_,_,DownloadRequest.DownloadFileDestination?)``.
    @discardableResult
    public func download(
        _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        makeDownload(urlRequest, destination.map { .asked($0) } ?? .none)
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
    ///   - fileURL: where to.
    ///   - options: whether to make directories and to replace a file; neither by default.
    @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
        to fileURL: URL, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        download(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), to: fileURL,
            options: options)
    }

    /// Makes a download of a `URLRequest` to a file.
    @discardableResult
    public func download(
        _ urlRequest: any URLRequestConvertible, to fileURL: URL, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        makeDownload(urlRequest, .known(fileURL, options))
    }

    private func makeDownload(
        _ urlRequest: any URLRequestConvertible, _ destination: DownloadTaskDelegate.Destination
    ) -> DownloadRequest {
        perform(
            DownloadRequest(
                session: session, sessionDelegate: delegate,
                original: original(Request.RequestTask.download) { Downloadable(request: try Requestable(urlRequest)) },
                delegate: DownloadTaskDelegate(session: session, sessionDelegate: delegate, destination: destination)))
    }
}
