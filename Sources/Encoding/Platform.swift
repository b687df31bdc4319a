// SPDX-License-Identifier: Apache-2.0

// From this layer up requests are Foundation's: on Linux, `URLRequest` and `HTTPURLResponse` are in a separate module.
@_exported import Foundation

#if canImport(FoundationNetworking)
@_exported import FoundationNetworking
#endif
