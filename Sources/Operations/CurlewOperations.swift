// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewCache
@_exported import CurlewCookies
@_exported import CurlewCore
@_exported import CurlewEncoding
@_exported import CurlewHTTP
@_exported import CurlewTransport

// Requests as Foundation operations, built on Core's public API.
