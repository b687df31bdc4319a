// SPDX-License-Identifier: Apache-2.0

// From this layer up requests are Foundation's: on Linux, `URLRequest` and `HTTPURLResponse` are in a separate module. Only what has no
// session in it is re-exported: `URLSession…` and `URLProtocol…` would be ambiguous beside a module that declares its own.
@_exported import Foundation

#if canImport(FoundationNetworking)
@_exported import class FoundationNetworking.CachedURLResponse
@_exported import class FoundationNetworking.HTTPCookie
@_exported import struct FoundationNetworking.HTTPCookiePropertyKey
@_exported import class FoundationNetworking.HTTPCookieStorage
@_exported import class FoundationNetworking.HTTPURLResponse
@_exported import class FoundationNetworking.NSMutableURLRequest
@_exported import var FoundationNetworking.NSURLAuthenticationMethodDefault
@_exported import var FoundationNetworking.NSURLAuthenticationMethodHTMLForm
@_exported import var FoundationNetworking.NSURLAuthenticationMethodHTTPBasic
@_exported import var FoundationNetworking.NSURLAuthenticationMethodHTTPDigest
@_exported import var FoundationNetworking.NSURLAuthenticationMethodNTLM
@_exported import var FoundationNetworking.NSURLAuthenticationMethodNegotiate
@_exported import var FoundationNetworking.NSURLCredentialStorageRemoveSynchronizableCredentials
@_exported import var FoundationNetworking.NSURLProtectionSpaceFTP
@_exported import var FoundationNetworking.NSURLProtectionSpaceFTPProxy
@_exported import var FoundationNetworking.NSURLProtectionSpaceHTTP
@_exported import var FoundationNetworking.NSURLProtectionSpaceHTTPProxy
@_exported import var FoundationNetworking.NSURLProtectionSpaceHTTPS
@_exported import var FoundationNetworking.NSURLProtectionSpaceHTTPSProxy
@_exported import var FoundationNetworking.NSURLProtectionSpaceSOCKSProxy
@_exported import class FoundationNetworking.NSURLRequest
@_exported import var FoundationNetworking.NSURLSessionTransferSizeUnknown
@_exported import class FoundationNetworking.URLAuthenticationChallenge
@_exported import protocol FoundationNetworking.URLAuthenticationChallengeSender
@_exported import class FoundationNetworking.URLCache
@_exported import class FoundationNetworking.URLCredential
@_exported import class FoundationNetworking.URLCredentialStorage
@_exported import class FoundationNetworking.URLProtectionSpace
@_exported import struct FoundationNetworking.URLRequest
@_exported import class FoundationNetworking.URLResponse
@_exported import enum FoundationNetworking.tls_ciphersuite_t
@_exported import enum FoundationNetworking.tls_protocol_version_t
#endif
