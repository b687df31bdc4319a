// SPDX-License-Identifier: Apache-2.0

// Differences between systems, in one place.
#if Redis
import CurlewCore
import CurlewEncoding
import CurlewHTTP

#if canImport(Glibc)
let streamSocketType = Int32(SOCK_STREAM.rawValue)
let tcpProtocol = Int32(IPPROTO_TCP)
#else
let streamSocketType = SOCK_STREAM
let tcpProtocol = Int32(IPPROTO_TCP)
#endif
#endif
