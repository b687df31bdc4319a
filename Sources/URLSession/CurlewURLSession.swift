// SPDX-License-Identifier: Apache-2.0

// Foundation's `URLSession` on Curlew, to be imported in place of FoundationNetworking. The types declared here replace those of the same
// names; what has no session in it stays Foundation's. Core is not re-exported, so that none of its names is ambiguous with a program's.
@_exported import CurlewURLLoading

@_exported import var CurlewCore.NSURLAuthenticationMethodClientCertificate
@_exported import var CurlewCore.NSURLAuthenticationMethodServerTrust
@_exported import struct CurlewTransport.ClientCertificate
@_exported import struct CurlewTransport.ServerTrust
