// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// Requests with header fields in a dictionary, which are sent in alphabetical order of their names.

extension SessionManager {
    /// Makes a request for a URL, with parameters encoded into it.
    @_disfavoredOverload @discardableResult
    public func request(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders?
    ) -> DataRequest {
        request(url, method: method, parameters: parameters, encoding: encoding, headers: headers.map { CurlewHTTP.HTTPHeaders($0) })
    }

    /// Makes a download from a URL.
    @_disfavoredOverload @preconcurrency @discardableResult
    public func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders?,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        download(
            url, method: method, parameters: parameters, encoding: encoding, headers: headers.map { CurlewHTTP.HTTPHeaders($0) },
            to: destination)
    }

    /// Makes an upload of bytes; POST by default.
    @_disfavoredOverload @discardableResult
    public func upload(
        _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders?
    ) -> UploadRequest {
        upload(data, to: url, method: method, headers: headers.map { CurlewHTTP.HTTPHeaders($0) })
    }

    /// Makes an upload of a file; POST by default.
    @_disfavoredOverload @discardableResult
    public func upload(
        _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders?
    ) -> UploadRequest {
        upload(fileURL, to: url, method: method, headers: headers.map { CurlewHTTP.HTTPHeaders($0) })
    }

    /// Makes an upload of a stream; POST by default.
    @_disfavoredOverload @discardableResult
    public func upload(
        _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders?
    ) -> UploadRequest {
        upload(stream, to: url, method: method, headers: headers.map { CurlewHTTP.HTTPHeaders($0) })
    }
}
