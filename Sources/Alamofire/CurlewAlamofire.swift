// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewCache
@_exported import CurlewCookies
@_exported import CurlewCore
@_exported import CurlewEncoding
@_exported import CurlewHTTP
@_exported import CurlewTransport
@_exported import CurlewURLLoading

// Declarations in this module shadow the re-exported types of the same name, and members of the same signature, for programs that import
// it. Overloads that differ in a type are disfavoured instead, so that literals have Curlew's types.

/// Header fields in a dictionary, as in Alamofire 4: unordered and without repetition. `CurlewHTTP.HTTPHeaders` supports both.
public typealias HTTPHeaders = [String: String]

/// A namespace with the module name of Alamofire, so that `Alamofire.request` and `Alamofire.SessionManager` keep their meaning.
public enum Alamofire {
    /// See ``AFError``.
    public typealias AFError = CurlewAlamofire.AFError
    /// See ``Result``.
    public typealias Result<Value> = CurlewAlamofire.Result<Value>
    /// See ``HTTPHeaders``.
    public typealias HTTPHeaders = CurlewAlamofire.HTTPHeaders

    /// See ``/CurlewHTTP/HTTPMethod``.
    public typealias HTTPMethod = CurlewHTTP.HTTPMethod
    /// See ``/CurlewHTTP/URLConvertible``.
    public typealias URLConvertible = CurlewHTTP.URLConvertible

    /// See ``/CurlewEncoding/URLRequestConvertible``.
    public typealias URLRequestConvertible = CurlewEncoding.URLRequestConvertible
    /// See ``/CurlewEncoding/Parameters``.
    public typealias Parameters = CurlewEncoding.Parameters
    /// See ``/CurlewEncoding/ParameterEncoding``.
    public typealias ParameterEncoding = CurlewEncoding.ParameterEncoding
    /// See ``/CurlewEncoding/URLEncoding``.
    public typealias URLEncoding = CurlewEncoding.URLEncoding
    /// See ``/CurlewEncoding/MultipartFormData``.
    public typealias MultipartFormData = CurlewEncoding.MultipartFormData
    /// See ``/CurlewEncoding/JSONEncoding``.
    public typealias JSONEncoding = CurlewEncoding.JSONEncoding
    /// See ``/CurlewEncoding/PropertyListEncoding``.
    public typealias PropertyListEncoding = CurlewEncoding.PropertyListEncoding

    /// See ``/CurlewCore/SessionManager``.
    public typealias SessionManager = CurlewCore.SessionManager
    /// See ``/CurlewCore/SessionDelegate``.
    public typealias SessionDelegate = CurlewCore.SessionDelegate
    /// See ``/CurlewCore/ServerTrustPolicy``.
    public typealias ServerTrustPolicy = CurlewCore.ServerTrustPolicy
    /// See ``/CurlewCore/ServerTrustPolicyManager``.
    public typealias ServerTrustPolicyManager = CurlewCore.ServerTrustPolicyManager
    /// See ``/CurlewCore/TaskDelegate``.
    public typealias TaskDelegate = CurlewCore.TaskDelegate
    /// See ``/CurlewCore/Request``.
    public typealias Request = CurlewCore.Request
    /// See ``/CurlewCore/DataRequest``.
    public typealias DataRequest = CurlewCore.DataRequest
    /// See ``/CurlewCore/DownloadRequest``.
    public typealias DownloadRequest = CurlewCore.DownloadRequest
    /// See ``/CurlewCore/UploadRequest``.
    public typealias UploadRequest = CurlewCore.UploadRequest
    /// See ``/CurlewCore/StreamRequest``.
    public typealias StreamRequest = CurlewCore.StreamRequest
    /// See ``/CurlewCore/NetworkReachabilityManager``.
    public typealias NetworkReachabilityManager = CurlewCore.NetworkReachabilityManager
    /// See ``/CurlewCore/RequestAdapter``.
    public typealias RequestAdapter = CurlewCore.RequestAdapter
    /// See ``/CurlewCore/RequestRetrier``.
    public typealias RequestRetrier = CurlewCore.RequestRetrier
    /// See ``/CurlewCore/RequestRetryCompletion``.
    @preconcurrency public typealias RequestRetryCompletion = CurlewCore.RequestRetryCompletion

    /// See ``/CurlewCore/DefaultDataResponse``.
    public typealias DefaultDataResponse = CurlewCore.DefaultDataResponse
    /// See ``/CurlewCore/DataResponse``.
    public typealias DataResponse = CurlewCore.DataResponse
    /// See ``/CurlewCore/DefaultDownloadResponse``.
    public typealias DefaultDownloadResponse = CurlewCore.DefaultDownloadResponse
    /// See ``/CurlewCore/DownloadResponse``.
    public typealias DownloadResponse = CurlewCore.DownloadResponse
    /// See ``/CurlewCore/DataResponseSerializerProtocol``.
    public typealias DataResponseSerializerProtocol = CurlewCore.DataResponseSerializerProtocol
    /// See ``/CurlewCore/DataResponseSerializer``.
    public typealias DataResponseSerializer = CurlewCore.DataResponseSerializer
    /// See ``/CurlewCore/DownloadResponseSerializerProtocol``.
    public typealias DownloadResponseSerializerProtocol = CurlewCore.DownloadResponseSerializerProtocol
    /// See ``/CurlewCore/DownloadResponseSerializer``.
    public typealias DownloadResponseSerializer = CurlewCore.DownloadResponseSerializer
    /// See ``/CurlewCore/Timeline``.
    public typealias Timeline = CurlewCore.Timeline
}
