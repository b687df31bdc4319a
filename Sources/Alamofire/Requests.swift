// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// Requests of the default manager. Curlew's functions of these names, which use another default manager, are not re-exported.

/// Makes a request for a URL, with parameters encoded into it, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func request(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil
) -> DataRequest {
    SessionManager.default.request(url, method: method, parameters: parameters, encoding: encoding, headers: headers)
}

/// Makes a request from a `URLRequest`, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
    SessionManager.default.request(urlRequest)
}

/// Makes a download from a URL, with ``/CurlewCore/SessionManager/default``.
@preconcurrency @discardableResult
public func download(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(url, method: method, parameters: parameters, encoding: encoding, headers: headers, to: destination)
}

/// Makes a download from a `URLRequest`, with ``/CurlewCore/SessionManager/default``.
@preconcurrency @discardableResult
public func download(
    _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(urlRequest, to: destination)
}

/// Resumes a download that was cancelled or failed, with ``/CurlewCore/SessionManager/default``.
@preconcurrency @discardableResult
public func download(
    resumingWith resumeData: Data, to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(resumingWith: resumeData, to: destination)
}

/// Makes an upload of a file, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func upload(
    _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(fileURL, to: url, method: method, headers: headers)
}

/// Makes an upload of a file as the body of a `URLRequest`, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(fileURL, with: urlRequest)
}

/// Makes an upload of bytes, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func upload(
    _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(data, to: url, method: method, headers: headers)
}

/// Makes an upload of bytes as the body of a `URLRequest`, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(data, with: urlRequest)
}

/// Makes an upload of a stream, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func upload(
    _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(stream, to: url, method: method, headers: headers)
}

/// Makes an upload of a stream as the body of a `URLRequest`, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(stream, with: urlRequest)
}

/// Opens a raw TCP connection, with ``/CurlewCore/SessionManager/default``.
@discardableResult
public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port)
}
