// SPDX-License-Identifier: Apache-2.0

// Foundation's `URLSession` and what has its tasks in signatures: a module of its own, because Curlew does not re-export these names, so
// that it can be imported beside another module that declares them. On Linux they are in a separate module of Foundation.
@_exported import Foundation

#if canImport(FoundationNetworking)
@_exported import FoundationNetworking
#endif
