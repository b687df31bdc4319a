// SPDX-License-Identifier: Apache-2.0

// From this layer up requests are Foundation's: `URLRequest` and `HTTPURLResponse` live in a module of their own on Linux.
@_exported import Foundation

#if canImport(FoundationNetworking)
@_exported import FoundationNetworking
#endif

#if !canImport(Darwin)
/// Seconds since the first instant of 2001, UTC.
public typealias CFAbsoluteTime = Double
#endif
