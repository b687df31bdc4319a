// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// The same functions as the global ones.

extension Alamofire {
    /// Makes a request for a URL, with parameters encoded into it, with the default manager.
    @discardableResult
    public static func request(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil
    ) -> DataRequest {
        CurlewAlamofire.request(url, method: method, parameters: parameters, encoding: encoding, headers: headers)
    }

    /// Makes a request from a `URLRequest`, with the default manager.
    @discardableResult
    public static func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        CurlewAlamofire.request(urlRequest)
    }

    /// Makes a download from a URL, with the default manager.
    @preconcurrency @discardableResult
    public static func download(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        CurlewAlamofire.download(url, method: method, parameters: parameters, encoding: encoding, headers: headers, to: destination)
    }

    /// Makes a download from a `URLRequest`, with the default manager.
    @preconcurrency @discardableResult
    public static func download(
        _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        CurlewAlamofire.download(urlRequest, to: destination)
    }

    /// Resumes a download that was cancelled or failed, with the default manager.
    @preconcurrency @discardableResult
    public static func download(
        resumingWith resumeData: Data, to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        CurlewAlamofire.download(resumingWith: resumeData, to: destination)
    }

    /// Makes an upload of a file, with the default manager.
    @discardableResult
    public static func upload(
        _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        CurlewAlamofire.upload(fileURL, to: url, method: method, headers: headers)
    }

    /// Makes an upload of a file as the body of a `URLRequest`, with the default manager.
    @discardableResult
    public static func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        CurlewAlamofire.upload(fileURL, with: urlRequest)
    }

    /// Makes an upload of bytes, with the default manager.
    @discardableResult
    public static func upload(
        _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        CurlewAlamofire.upload(data, to: url, method: method, headers: headers)
    }

    /// Makes an upload of bytes as the body of a `URLRequest`, with the default manager.
    @discardableResult
    public static func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        CurlewAlamofire.upload(data, with: urlRequest)
    }

    /// Makes an upload of a stream, with the default manager.
    @discardableResult
    public static func upload(
        _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        CurlewAlamofire.upload(stream, to: url, method: method, headers: headers)
    }

    /// Makes an upload of a stream as the body of a `URLRequest`, with the default manager.
    @discardableResult
    public static func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        CurlewAlamofire.upload(stream, with: urlRequest)
    }

    /// Opens a raw TCP connection, with the default manager.
    @discardableResult
    public static func stream(withHostName hostName: String, port: Int) -> StreamRequest {
        CurlewAlamofire.stream(withHostName: hostName, port: port)
    }
}
