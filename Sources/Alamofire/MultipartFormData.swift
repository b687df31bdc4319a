// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import Dispatch

extension MultipartFormData {
    /// Appends a part from a stream, with header fields in a dictionary; `Content-Disposition` is sent first, then `Content-Type`.
    @_disfavoredOverload
    public func append(_ stream: InputStream, withLength length: UInt64, headers: HTTPHeaders) {
        append(stream, withLength: length, headers: CurlewHTTP.HTTPHeaders(headers))
    }

    /// Returns the whole body in memory.
    ///
    /// Files and streams are read to their ends before this returns; a stream can be read only once.
    ///
    /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
    public func encode() throws -> Data {
        try AFError.translating { try encoded() }
    }

    /// Writes the whole body to a new file, in pieces. On failure no file is left.
    ///
    /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
    public func writeEncodedData(to fileURL: URL) throws {
        try AFError.translating { try writeEncodedData(to: fileURL, permissions: 0o666) }
    }
}

extension SessionManager {
    /// Encodes a form and makes an upload of it to a URL; errors go to its completion as ``AFError/multipartEncodingFailed(reason:)``.
    @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        to url: any URLConvertible, method: HTTPMethod = .post, headers: CurlewHTTP.HTTPHeaders? = nil, queue: DispatchQueue? = nil,
        encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        session.deliverErrors(as: AFError.translate)
        uploadForm(multipartFormData, encodingMemoryThreshold, to: url, method, headers, nil, queue, copiesFiles: true, encodingCompletion)
    }

    /// Encodes a form and makes an upload of it as the body of a `URLRequest`; errors go to its completion as
    /// ``AFError/multipartEncodingFailed(reason:)``.
    @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        with urlRequest: any URLRequestConvertible, queue: DispatchQueue? = nil,
        encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        session.deliverErrors(as: AFError.translate)
        uploadForm(multipartFormData, encodingMemoryThreshold, with: urlRequest, nil, queue, copiesFiles: true, encodingCompletion)
    }

    /// Encodes a form and makes an upload of it to a URL, with header fields in a dictionary.
    @_disfavoredOverload @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders?, queue: DispatchQueue? = nil,
        encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        upload(
            multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, to: url, method: method,
            headers: headers.map { CurlewHTTP.HTTPHeaders($0) }, queue: queue, encodingCompletion: encodingCompletion)
    }
}

/// Encodes a form and makes an upload of it to a URL, with ``/CurlewCore/SessionManager/default``.
@preconcurrency
public func upload(
    multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
) {
    SessionManager.default.upload(
        multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, to: url, method: method, headers: headers,
        encodingCompletion: encodingCompletion)
}

/// Encodes a form and makes an upload of it as the body of a `URLRequest`, with ``/CurlewCore/SessionManager/default``.
@preconcurrency
public func upload(
    multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    with urlRequest: any URLRequestConvertible,
    encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
) {
    SessionManager.default.upload(
        multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, with: urlRequest,
        encodingCompletion: encodingCompletion)
}

extension Alamofire {
    /// Encodes a form and makes an upload of it to a URL, with the default manager.
    @preconcurrency
    public static func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
        encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
    ) {
        CurlewAlamofire.upload(
            multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, to: url, method: method, headers: headers,
            encodingCompletion: encodingCompletion)
    }

    /// Encodes a form and makes an upload of it as the body of a `URLRequest`, with the default manager.
    @preconcurrency
    public static func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        with urlRequest: any URLRequestConvertible,
        encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
    ) {
        CurlewAlamofire.upload(
            multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, with: urlRequest,
            encodingCompletion: encodingCompletion)
    }
}
